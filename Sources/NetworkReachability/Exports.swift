// The two types of a lower layer that appear in this module's API.
@_exported public import struct NetwatchEventLoop.IPAddress
@_exported public import struct NetwatchEventLoop.SystemError

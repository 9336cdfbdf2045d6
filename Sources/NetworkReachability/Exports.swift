// The two types of a lower layer that stand in this module's interface.
@_exported public import struct NetwatchEventLoop.IPAddress
@_exported public import struct NetwatchEventLoop.SystemError

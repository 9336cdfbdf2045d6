// Types of another module that appear in the API of this one.
@_exported public import struct NetwatchEventLoop.IPAddress
@_exported public import struct NetwatchEventLoop.SystemError

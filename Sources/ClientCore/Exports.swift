// One import gives a client program the failures of transfers and reachability too.

@_exported public import NetwatchTransport
@_exported public import NetworkReachability

// What a failure to connect lists.
@_exported public import struct NetwatchEventLoop.ConnectionAttempt

// `import ClientCore` also imports `TransferFailure` and the API of NetworkReachability.

@_exported public import NetwatchTransport
@_exported public import NetworkReachability

// The type of the elements of `TransferFailure.connectionAttempts`.
@_exported public import struct NetwatchEventLoop.ConnectionAttempt

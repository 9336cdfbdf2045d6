// One import gives a client program reachability and the failures of transfers too.
@_exported public import NetworkReachability
@_exported public import NetwatchTransport

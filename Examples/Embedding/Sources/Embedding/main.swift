import Dispatch
import Glibc
import NetworkReachability

// Prints the reachability of a host, and each change, until the program is ended.
guard CommandLine.arguments.count == 2,
    let manager = NetworkReachabilityManager(host: CommandLine.arguments[1])
else {
    print("usage: Embedding HOST, where HOST is \(NetworkHost.acceptedForms)")
    exit(64)
}
manager.listener = { status in
    switch status {
    case .unknown: print("unknown")
    case .notReachable: print("not reachable")
    case .reachable(let connection): print("reachable over \(connection)")
    }
    fflush(nil)
}
manager.startListening()
dispatchMain()

internal import Synchronization

/// Which address of a host served last, so that the next connection does not wait for the dead ones before it.
package final class ConnectionWinners: Sendable {
    /// For a program that talks to many hosts. It then begins anew.
    private static let limit = 1024

    private struct Destination: Hashable {
        let host: String
        let port: UInt16
    }

    private let addresses = Mutex<[Destination: IPAddress]>([:])

    package init() {}

    package func address(of host: String, port: UInt16) -> IPAddress? {
        addresses.withLock { $0[Destination(host: host, port: port)] }
    }

    package func remember(_ address: IPAddress, of host: String, port: UInt16) {
        addresses.withLock { addresses in
            if addresses.count >= Self.limit { addresses = [:] }
            addresses[Destination(host: host, port: port)] = address
        }
    }

    /// It was connected to and did not serve.
    package func forget(_ address: IPAddress, of host: String, port: UInt16) {
        let destination = Destination(host: host, port: port)
        addresses.withLock { if $0[destination] == address { $0[destination] = nil } }
    }

    /// For when the network has changed, and with it perhaps who answers.
    package func removeAll() {
        addresses.withLock { $0 = [:] }
    }
}

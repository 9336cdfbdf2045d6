/// For each host, the last address that worked. The next connection to the host tries it first, so that it does not
/// wait for dead addresses.
package final class PreferredAddresses: Sendable {
    /// The maximum number of entries, one for each host and port. When it is reached, all entries are removed.
    private static let limit = 1024

    private struct Destination: Hashable {
        let host: String
        let port: UInt16
    }

    private let addresses = Lock<[Destination: IPAddress]>([:])

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

    /// Removes an address that accepted a connection but sent no response.
    package func forget(_ address: IPAddress, of host: String, port: UInt16) {
        let destination = Destination(host: host, port: port)
        addresses.withLock { if $0[destination] == address { $0[destination] = nil } }
    }

    /// Removes all addresses. Called when the network has changed.
    package func removeAll() {
        addresses.withLock { $0 = [:] }
    }
}

/// For each host, the addresses that the next connection tries first. They are one of these:
///
/// - the last address that worked, so that a connection does not wait for dead addresses;
/// - after a failure, the addresses for which there was no time (``ConnectionFailure/resumption``).
package final class PreferredAddresses: Sendable {
    /// The maximum number of entries, one for each host and port. When it is reached, all entries are removed.
    private static let limit = 1024

    private struct Destination: Hashable {
        let host: String
        let port: UInt16
    }

    private let addresses = Lock<[Destination: [IPAddress]]>([:])

    package init() {}

    package func addresses(of host: String, port: UInt16) -> [IPAddress] {
        addresses.withLock { $0[Destination(host: host, port: port)] ?? [] }
    }

    /// Replaces the addresses of a host. Has no effect if there are none.
    package func remember(_ preferred: [IPAddress], of host: String, port: UInt16) {
        guard !preferred.isEmpty else { return }
        addresses.withLock { addresses in
            if addresses.count >= Self.limit { addresses = [:] }
            addresses[Destination(host: host, port: port)] = preferred
        }
    }

    /// Removes an address that accepted a connection but sent no response.
    package func forget(_ address: IPAddress, of host: String, port: UInt16) {
        let destination = Destination(host: host, port: port)
        addresses.withLock { $0[destination]?.removeAll { $0 == address } }
    }

    /// Removes all addresses. Called when the network has changed.
    package func removeAll() {
        addresses.withLock { $0 = [:] }
    }
}

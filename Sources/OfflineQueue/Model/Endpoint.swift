/// A host and a port, to which the kernel routes packets. A policy rule may route the ports of a host differently.
package struct Endpoint: Hashable, Sendable {
    /// A name or an address in lower case; IPv6 without brackets.
    package let host: String
    /// The TCP port, 1 to 65535.
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

extension Endpoint: Comparable {
    package static func < (left: Self, right: Self) -> Bool {
        (left.host, left.port) < (right.host, right.port)
    }
}

extension Origin {
    /// The host and the port. Origins with different schemes may have the same.
    package var endpoint: Endpoint { Endpoint(host: host, port: port) }
}

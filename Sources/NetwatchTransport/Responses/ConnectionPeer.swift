package import NetwatchEventLoop

/// The remote end of a connection. The route to it may depend on the port (ip-rule(8), `dport`).
package struct ConnectionPeer: Hashable, Sendable, CustomStringConvertible {
    package let address: IPAddress
    package let port: UInt16

    package init(address: IPAddress, port: UInt16) {
        (self.address, self.port) = (address, port)
    }

    /// The address and the port, for example `192.0.2.1:443` or `[2001:db8::1]:443`.
    package var description: String {
        let address = address.description
        return "\(address.contains(":") ? "[\(address)]" : address):\(port)"
    }
}

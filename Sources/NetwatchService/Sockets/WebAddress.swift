package import NetwatchEventLoop

/// The loopback address and port on which the status page is served.
package struct WebAddress: Hashable, Sendable, CustomStringConvertible {
    package static let acceptedForms = "a loopback address and a port, like `127.0.0.1:9317` or `[::1]:9317`"

    package let address: IPAddress
    package let port: UInt16

    /// Parses `ADDRESS:PORT`. Returns `nil` for other text, for port 0 and for addresses that other machines can reach.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
            port > 0
        else { return nil }
        var host = text[..<colon]
        if host.first == "[", host.last == "]" {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard let address = IPAddress(String(host)), address.isLoopback else { return nil }
        self.address = address
        self.port = port
    }

    package var description: String {
        let host = address.description
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

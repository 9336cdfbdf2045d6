extension NameResolver {
    /// Returns the addresses of a name that needs no lookup: an IP address, `localhost`, or a name below `localhost`.
    /// Returns `nil` for all other names.
    ///
    /// Name servers must not be queried for `localhost` (RFC 6761 §6.3).
    package static func localAddresses(of name: String) -> [IPAddress]? {
        if let literal = IPAddress(name) { return [literal] }
        return isLocalhost(name) ? loopback : nil
    }

    private static let loopback = [IPAddress("::1")!, IPAddress("127.0.0.1")!]

    /// Returns whether the name is `localhost` or below it, so that it refers to this machine (RFC 6761 §6.3).
    package static func isLocalhost(_ name: String) -> Bool {
        let labels = name.hasSuffix(".") ? name.dropLast() : name[...]
        return labels.split(separator: ".", omittingEmptySubsequences: false).last?.lowercased()
            == "localhost"
    }
}

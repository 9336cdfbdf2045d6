internal import Foundation

extension URL {
    /// Returns whether both URLs have the same scheme, host and port (RFC 6454 §4).
    func hasSameOrigin(as other: URL) -> Bool {
        scheme?.lowercased() == other.scheme?.lowercased()
            && host?.lowercased() == other.host?.lowercased()
            && effectivePort == other.effectivePort
    }

    private var effectivePort: Int? {
        port ?? (scheme?.lowercased() == "https" ? 443 : 80)
    }

    /// Returns a message that says why a connection to this host and port is impossible; `nil` if it is possible.
    ///
    /// - Parameter host: The host after percent-decoding. A line break (`%0a`) is valid in a path, but not in a host.
    static func fault(ofHost host: String, port: Int?) -> String? {
        if let port, !(0...65535).contains(port) { return "port \(port) is not in 0 to 65535" }
        let isName = host.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
        return isName ? nil : "the host \(host.debugDescription) contains an invalid character"
    }
}

internal import Foundation
internal import NetwatchEventLoop

/// Normalizes hosts, so that different spellings of a host have the same server trust policy.
enum TrustHost {
    /// Returns a lowercase ASCII name without a trailing dot, or an address in its canonical form without brackets.
    ///
    /// - Returns: `nil` if the text is not a host, for example because it is empty or has a scheme, a port, a path or a
    ///   wildcard.
    static func normalized(_ text: String) -> String? {
        var host = text[...]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        if let address = IPAddress(String(host)) { return address.description }
        guard !host.isEmpty, !host.contains(where: { ":/?#@*[] ".contains($0) }) else { return nil }
        guard let name = URL(string: "https://\(host)/")?.host, name.allSatisfy(\.isASCII) else { return nil }
        let lowered = name.lowercased()
        return lowered.hasSuffix(".") ? String(lowered.dropLast()) : lowered
    }
}

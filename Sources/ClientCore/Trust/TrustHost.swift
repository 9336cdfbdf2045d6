internal import Foundation
internal import NetwatchEventLoop

/// A host as policies are looked up by: a name in small letters, in ASCII and without a dot at its end, or an address
/// as it is usually written, without brackets.
enum TrustHost {
    /// - Returns: `nil` for what is no host: with a scheme, a port, a path or a wildcard, or empty.
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

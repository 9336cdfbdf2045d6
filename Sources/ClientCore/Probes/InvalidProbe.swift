internal import Foundation

/// The error for invalid parameters of a probe.
public struct InvalidProbe: Error, Hashable, Sendable, CustomStringConvertible {
    /// A message that says what is invalid, and what is accepted.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Checks URLs for probes.
enum ProbeURL {
    /// The maximum length in bytes of a URL from a portal. RFC 9110 §4.1 recommends that URLs of at least 8000 bytes
    /// are supported.
    static let longestFromPortal = 8000

    /// Parses the URL of a probe.
    ///
    /// - Throws: ``InvalidProbe`` if `url` is not a URL with a host and one of the schemes.
    static func parse(_ url: any URLConvertible, schemes: [String]) throws(InvalidProbe) -> URL {
        let accepted = schemes.map { "\($0)://HOST/…" }.joined(separator: " or ")
        guard let parsed = try? url.asURL() else {
            let shown = RedactedURL.text(ofUnchecked: "\(url)")
            throw InvalidProbe("`\(shown)` is not a URL; \(accepted) is accepted")
        }
        guard let scheme = parsed.scheme?.lowercased(), schemes.contains(scheme), isHost(parsed.host) else {
            throw InvalidProbe("`\(parsed.textWithoutSecrets)` cannot be probed; \(accepted) is accepted")
        }
        return parsed
    }

    /// Returns the absolute form of a URL that a portal wants the user to open.
    ///
    /// - Returns: `nil` if the URL is too long or has no host, or if its scheme is not one of `schemes`: a program that
    ///   opens URLs would also open `file:` and `javascript:`.
    static func opened(by text: String, from base: URL?, schemes: [String]) -> String? {
        guard text.utf8.count <= longestFromPortal else { return nil }
        guard let url = URL(string: text, relativeTo: base)?.absoluteURL else { return nil }
        guard let scheme = url.scheme?.lowercased(), schemes.contains(scheme) else { return nil }
        return isHost(url.host) ? url.absoluteString : nil
    }

    private static func isHost(_ host: String?) -> Bool {
        host?.isEmpty == false
    }
}

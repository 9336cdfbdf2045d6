internal import Foundation

/// A probe cannot be made of what it was given; the description says why, and what is accepted.
public struct InvalidProbe: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, in words for a person.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// The URL of a probe.
enum ProbeURL {
    /// The longest URL that is taken from a portal: as long as everyone should support (RFC 9110 §4.1).
    static let longestFromPortal = 8000

    /// - Throws: ``InvalidProbe`` for what is no URL with a host and one of these schemes.
    static func parse(_ url: any URLConvertible, schemes: [String]) throws(InvalidProbe) -> URL {
        let accepted = schemes.map { "\($0)://HOST/…" }.joined(separator: " or ")
        guard let parsed = try? url.asURL() else {
            throw InvalidProbe("`\(url)` is not a URL; \(accepted) is accepted")
        }
        guard let scheme = parsed.scheme?.lowercased(), schemes.contains(scheme), isHost(parsed.host) else {
            throw InvalidProbe("`\(parsed.absoluteString)` cannot be probed; \(accepted) is accepted")
        }
        return parsed
    }

    /// The absolute form of a URL that a portal wants a user to open, or `nil` for one that is not on the
    /// web: what opens it would follow `file:` and `javascript:` too.
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

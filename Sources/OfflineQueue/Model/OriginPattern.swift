internal import Foundation
package import NetwatchTransport

/// An origin to which a credential may be sent: a scheme, a host and a port. The host may begin with `*.`, which stands
/// for one or more labels.
package struct OriginPattern: Hashable, Sendable, CustomStringConvertible {
    private let origin: TransferOrigin
    private let isWildcard: Bool

    /// Returns what is accepted instead of a text that is not an origin.
    package static func advice(insteadOf text: String) -> String {
        Origin.adviceOnName(in: text.replacing("://*.", with: "://", maxReplacements: 1))
            ?? "accepted: `https://HOST` or `http://HOST`, with an optional `:PORT`; HOST may begin with `*.`"
    }

    /// Parses text such as `https://api.example.com`, `http://[::1]:8080` or `https://*.example.com`. The default of
    /// the port is the scheme's port.
    ///
    /// - Throws: ``QueueError`` with `invalidOption`, which quotes the text.
    package init(_ text: String) throws(QueueError) {
        let start = text.firstRange(of: "://")?.upperBound ?? text.endIndex
        isWildcard = text[start...].hasPrefix("*.")
        let rest = isWildcard ? text[start...].dropFirst(2) : text[start...]
        let url = String(text[..<start] + (rest.hasSuffix("/") ? rest.dropLast() : rest))
        guard !rest.contains(where: { "*@?#".contains($0) }), !url.dropFirst(8).contains("/"),
            let syntax = try? Origin(url: url), Self.isName(syntax.host, isWildcard),
            let origin = try? TransferOrigin(url: url)
        else {
            throw QueueError(
                .invalidOption,
                "\(quoted(text)) is not an origin; \(Self.advice(insteadOf: text))"
            )
        }
        self.origin = origin
    }

    /// Returns whether a host can be part of a pattern. A wildcard requires a name, because the labels of an address
    /// have no hierarchy: `*.0.0.1` would match 127.0.0.1.
    private static func isName(_ host: String, _ isWildcard: Bool) -> Bool {
        guard HostText.isValid(host) else { return false }
        return !isWildcard
            || !(host.contains(":") || host.split(separator: ".").last?.allSatisfy(\.isNumber) ?? true)
    }

    /// Returns whether the credential may be sent to an origin.
    ///
    /// A wildcard matches only hosts of ASCII letters, digits, `-`, `_` and `.`, because a name server can return
    /// anything for the others.
    package func matches(_ other: TransferOrigin) -> Bool {
        guard other.scheme == origin.scheme, other.port == origin.port else { return false }
        guard isWildcard else { return other.host == origin.host }
        return other.host.hasSuffix("." + origin.host) && other.host.unicodeScalars.allSatisfy(Self.isPlain)
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII
            && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                || "-_.".unicodeScalars.contains(scalar))
    }

    /// The pattern with its port.
    package var description: String {
        let text = origin.description
        return isWildcard ? text.replacing("://", with: "://*.", maxReplacements: 1) : text
    }
}

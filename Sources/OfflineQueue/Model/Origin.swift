internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop
package import NetwatchTransport
internal import NetworkReachability

/// The origin of a request's URL: scheme, host and port (RFC 6454).
package struct Origin: Hashable, Sendable, CustomStringConvertible {
    package let scheme: String
    /// The host in lower case; an IPv6 address without brackets.
    package let host: String
    package let port: Int

    package init(scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Creates the origin of an absolute URL.
    ///
    /// - Parameter allowsUserInfo: Whether the URL may contain a user name and a password. Default `false`, because the
    ///   queue stores no secrets.
    /// - Throws: ``QueueError`` with `invalidURL`.
    package init(url: String, allowsUserInfo: Bool = false) throws(QueueError) {
        guard !url.isEmpty else { throw QueueError(.invalidURL, "the URL must not be empty") }
        func shown() -> String { quoted(RedactedURL.text(ofUnchecked: url)) }
        let example = "an example is `https://example.com/a%20b`"
        guard let parts = URLComponents(string: url, encodingInvalidCharacters: false) else {
            let advice = Self.adviceOnName(in: url) ?? example
            throw QueueError(.invalidURL, "\(shown()) is not a URL; \(advice)")
        }
        guard allowsUserInfo || (parts.user == nil && parts.password == nil) else {
            throw QueueError(.invalidURL, "the URL contains a user name or password: \(SecretRemoval.hint)")
        }
        guard let scheme = parts.scheme?.lowercased() else {
            let message = "\(shown()) does not begin with `http://` or `https://`; \(example)"
            throw QueueError(.invalidURL, message)
        }
        guard let usual = URL.defaultPorts[scheme] else {
            throw QueueError(.invalidURL, "the scheme of \(shown()) is not http or https; \(example)")
        }
        // `URLComponents.host` would decode `xn--…`.
        let written = parts.encodedHost?.removingPercentEncoding ?? ""
        let host = Self.withoutBrackets(written).lowercased()
        guard !host.isEmpty else { throw QueueError(.invalidURL, "\(shown()) has no host; \(example)") }
        let port = parts.port ?? usual
        guard (1...65535).contains(port) else {
            throw QueueError(.invalidURL, "the port of \(shown()) is not in the range 1 to 65535")
        }
        self.init(scheme: scheme, host: host, port: port)
    }

    /// Returns the hosts that ``host(named:)`` accepts, for messages that refuse `text`.
    package static func acceptedHosts(insteadOf text: String) -> String {
        let advice = InternationalName.advice(for: text).map { "; \($0)" } ?? ""
        return "a host name or an address, like api.example.com, without scheme and port\(advice)"
    }

    /// Returns a host that a user typed, in the form of ``host``; `nil` if the text cannot be a URL's host.
    ///
    /// An IPv6 address is accepted with and without brackets.
    package static func host(named text: String) -> String? {
        let bare = String(withoutBrackets(text))
        // An IPv6 address contains at least two colons. A single colon precedes a port.
        let literal = bare.count(where: { $0 == ":" }) > 1 ? "[\(bare)]" : bare
        guard HostText.isValid(bare), let host = try? Origin(url: "http://\(literal)/").host,
            host == bare.lowercased()
        else { return nil }
        return host
    }

    /// Returns a host of the configuration in the form of ``host``.
    ///
    /// - Throws: ``QueueError`` with `invalidConfiguration`, for example for a name with a port or a scheme, or for a
    ///   pattern such as `*.example.com`.
    package static func configuredHost(_ text: String) throws(QueueError) -> String {
        if let host = host(named: text) { return host }
        throw HostText.refusal(of: text)
    }

    /// Whether the host is this machine: `localhost`, a name below it (RFC 6761 §6.3), or a loopback address.
    package var isLoopback: Bool {
        NameResolver.localAddresses(of: host)?.allSatisfy(\.isLoopback) ?? false
    }

    /// The origin with its port, such as `https://api.example.com:443` or `http://[::1]:8080`.
    package var description: String {
        "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }

    /// Returns how the international name in a text that is not a URL must be written; `nil` without such a name.
    static func adviceOnName(in text: String) -> String? {
        writtenHost(of: text).flatMap(InternationalName.advice)
    }

    /// Returns the host of a text that is not a URL, without a user name and a port; `nil` if the text may contain a
    /// password with a `/`.
    private static func writtenHost(of text: String) -> String? {
        guard let start = text.firstRange(of: "://")?.upperBound else { return nil }
        let authority = text[start...].prefix { !"/?#".contains($0) }
        guard !text[authority.endIndex...].contains("@") else { return nil }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last
        return host.map { String($0.prefix { $0 != ":" }) }
    }

    private static func withoutBrackets(_ host: String) -> Substring {
        host.hasPrefix("[") ? host.dropFirst().dropLast() : host[...]
    }
}

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

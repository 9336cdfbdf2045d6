public import Foundation
public import FoundationNetworking
internal import NetwatchEventLoop

/// A type that can be converted to a URL.
@preconcurrency public protocol URLConvertible: Sendable {
    /// Returns the URL.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, or any other error of a conforming type. The error becomes the error of
    ///   the request.
    func asURL() throws -> URL
}

/// A type that can be converted to a `URLRequest`.
@preconcurrency public protocol URLRequestConvertible: Sendable {
    /// Returns the request.
    ///
    /// - Throws: Any error of the conforming type. The error becomes the error of the request.
    func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
    /// The request, or `nil` if creating it fails.
    public var urlRequest: URLRequest? { try? asURLRequest() }
}

extension URL {
    /// Returns whether both URLs have the same scheme, host and port (RFC 6454 §4).
    func hasSameOrigin(as other: URL) -> Bool {
        scheme?.lowercased() == other.scheme?.lowercased()
            && host?.lowercased() == other.host?.lowercased()
            && effectivePort == other.effectivePort
    }

    /// Returns whether this URL is http and the other is https.
    func isLessSecure(than other: URL) -> Bool {
        other.scheme?.lowercased() == "https" && scheme?.lowercased() == "http"
    }

    /// Returns whether this URL is the https form of the other: the same host, http and https at their default ports.
    func isUpgrade(of other: URL) -> Bool {
        other.isLessSecure(than: self) && host?.lowercased() == other.host?.lowercased()
            && effectivePort == Self.defaultPorts["https"] && other.effectivePort == Self.defaultPorts["http"]
    }

    /// The default ports by lower-case scheme (RFC 9110 §4.2).
    package static let defaultPorts = ["http": 80, "https": 443]

    /// The port of the URL, or the default port of its scheme; `nil` for a scheme other than http and https.
    var effectivePort: Int? { port ?? scheme.flatMap { Self.defaultPorts[$0.lowercased()] } }

    /// The absolute URL without user name and password; `nil` if Foundation does not accept the rest.
    package var withoutUserInfo: URL? { URL(string: Self.removingUserInfo(from: absoluteString)) }

    /// Removes the user name and password from the text of a URL, `scheme://user:password@host/path`. The rest of the
    /// text stays as it is. The text may be malformed, because the queue removes secrets before it validates a URL. It
    /// may also be a relative URL, `//user:password@host/path`.
    package static func removingUserInfo(from text: String) -> String {
        replacingUserInfo(in: text, with: "")
    }

    /// Replaces the user name, the password and the `@` after them, as ``removingUserInfo(from:)`` does.
    static func replacingUserInfo(in text: String, with replacement: String) -> String {
        // Searches bytes instead of characters: a combining character after a delimiter forms one `Character` with it.
        let bytes = text.utf8
        let isDelimiter = { (byte: UInt8) in "/?#".utf8.contains(byte) }
        let scheme = bytes.prefix { !isDelimiter($0) }
        guard scheme.isEmpty || scheme.last == UInt8(ascii: ":"),
            bytes[scheme.endIndex...].starts(with: "//".utf8)
        else { return text }
        let start = bytes.index(scheme.endIndex, offsetBy: 2)
        let authority = bytes[start...].prefix { !isDelimiter($0) }
        guard let end = authority.lastIndex(of: UInt8(ascii: "@")) else { return text }
        return text[..<start] + replacement + text[bytes.index(after: end)...]
    }

    /// The text of the absolute URL for descriptions and messages; see ``RedactedURL/text(of:)``.
    var textWithoutSecrets: String { RedactedURL.text(of: absoluteString) }

    /// Returns a message that says why a connection to this host and port is impossible; `nil` if it is possible.
    ///
    /// - Parameter host: The host after percent-decoding. A line break (`%0a`) is valid in a path, but not in a host.
    static func fault(ofHost host: String, port: Int?) -> String? {
        if let port, !(0...65535).contains(port) { return "port \(port) is not in 0 to 65535" }
        let isName = host.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
        return isName ? nil : "the host \(host.printableLiteral) contains an invalid character"
    }
}

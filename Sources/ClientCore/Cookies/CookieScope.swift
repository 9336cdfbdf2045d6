internal import Foundation
internal import FoundationNetworking

/// Domain and path matching of cookies (RFC 6265 §5.1.3 and §5.1.4).
enum CookieScope {
    /// Whether `host` is the `domain` of a cookie or a subdomain of it.
    ///
    /// - Parameters:
    ///   - host: The lower-case host.
    ///   - domain: The lower-case domain without a leading dot.
    static func host(_ host: String, matches domain: String) -> Bool {
        guard host != domain else { return true }
        return host.hasSuffix("." + domain) && !isAddress(host)
    }

    /// Whether `path` is the path of a cookie or below it.
    static func path(_ path: String, matches cookiePath: String) -> Bool {
        guard path.hasPrefix(cookiePath) else { return false }
        return path.utf8.count == cookiePath.utf8.count || cookiePath.hasSuffix("/")
            || path.utf8.dropFirst(cookiePath.utf8.count).first == UInt8(ascii: "/")
    }

    /// Returns the path of a cookie without a `Path` attribute: the URL's path up to its last slash, without the slash.
    static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash > path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether the host is an IP address. An address has no parent domains, so its cookies apply to it alone.
    ///
    /// A host is an address if it contains a colon, or if its last label is a number (WHATWG URL standard). For
    /// example, libcurl treats `127.1` and `0x7f.1` as addresses.
    static func isAddress(_ host: String) -> Bool {
        guard !host.contains(":"), let label = host.split(separator: ".").last?.lowercased()
        else { return host.contains(":") }
        guard !label.hasPrefix("0x") else { return label.dropFirst(2).allSatisfy(\.isHexDigit) }
        return label.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}

/// The parts of a request's URL that decide about its cookies.
struct CookieOrigin: Equatable, Sendable {
    /// The lower-case host. An IPv6 address has no brackets.
    let host: String
    /// The path, percent-encoded and without dot segments, as it is sent; `/` if the URL has no path.
    let path: String
    /// Whether the scheme is `https`.
    let isSecure: Bool

    /// Returns `nil` if the URL has no host, or a scheme other than `http` and `https`.
    init?(_ url: URL) {
        let scheme = url.scheme?.lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        guard let host = url.host?.lowercased(), !host.isEmpty else { return nil }
        let path = url.standardized.path(percentEncoded: true)
        self.host = host
        self.path = path.isEmpty ? "/" : path
        isSecure = scheme == "https"
    }

    /// Whether both hosts are certain to belong to the same site: they are equal, or one is a subdomain of the other.
    /// Two subdomains of a site do not count.
    func isSameSite(as other: CookieOrigin) -> Bool {
        CookieScope.host(host, matches: other.host) || CookieScope.host(other.host, matches: host)
    }
}

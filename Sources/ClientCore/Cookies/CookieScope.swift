internal import Foundation
internal import FoundationNetworking

/// Domain and path matching of cookies (RFC 6265 §5.1.3 and §5.1.4).
enum CookieScope {
    /// Whether `host` matches a cookie's `domain`, which is lower-case and has no leading dot.
    static func host(_ host: String, matches domain: String) -> Bool {
        guard host != domain else { return true }
        return host.hasSuffix("." + domain) && !isAddress(host)
    }

    /// Whether a request to `path` matches a cookie's path.
    static func path(_ path: String, matches cookiePath: String) -> Bool {
        guard path.hasPrefix(cookiePath) else { return false }
        return path.utf8.count == cookiePath.utf8.count || cookiePath.hasSuffix("/")
            || path.utf8.dropFirst(cookiePath.utf8.count).first == UInt8(ascii: "/")
    }

    /// Returns the path of a cookie without a `Path` attribute: the URL's path up to its last slash.
    static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash > path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether the host is an IP address, which has no parent domains. It is if it contains colons, or if its
    /// last label is a number, as in the WHATWG URL standard. libcurl takes `127.1` and `0x7f.1` for addresses.
    static func isAddress(_ host: String) -> Bool {
        guard !host.contains(":"), let label = host.split(separator: ".").last?.lowercased()
        else { return host.contains(":") }
        guard !label.hasPrefix("0x") else { return label.dropFirst(2).allSatisfy(\.isHexDigit) }
        return label.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}

/// The parts of a URL that RFC 6265 uses.
struct CookieOrigin: Equatable, Sendable {
    /// Lower-case. An IPv6 address has no brackets.
    let host: String
    /// Percent-encoded, as sent; `/` if the URL has no path.
    let path: String
    let isSecure: Bool

    /// - Returns: `nil` without a host, and for schemes other than http and https.
    init?(_ url: URL) {
        let scheme = url.scheme?.lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        guard let host = url.host?.lowercased(), !host.isEmpty else { return nil }
        let path = url.path(percentEncoded: true)
        self.host = host
        self.path = path.isEmpty ? "/" : path
        isSecure = scheme == "https"
    }

    /// Whether both hosts belong to the same site. Without a list of public suffixes this is only certain for a
    /// host, its parents and its children.
    func isSameSite(as other: CookieOrigin) -> Bool {
        CookieScope.host(host, matches: other.host) || CookieScope.host(other.host, matches: host)
    }
}

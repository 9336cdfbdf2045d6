internal import Foundation
internal import FoundationNetworking

/// Which cookies a host may set and gets back: RFC 6265 §5.1.3 and §5.1.4.
enum CookieScope {
    /// Whether a cookie for `domain`, lower-case and without a leading dot, is for that host as well.
    static func host(_ host: String, matches domain: String) -> Bool {
        guard host != domain else { return true }
        return host.hasSuffix("." + domain) && !isAddress(host)
    }

    /// Whether a cookie for that path is for a request to the other one.
    static func path(_ path: String, matches cookiePath: String) -> Bool {
        guard path.hasPrefix(cookiePath) else { return false }
        return path.utf8.count == cookiePath.utf8.count || cookiePath.hasSuffix("/")
            || path.utf8.dropFirst(cookiePath.utf8.count).first == UInt8(ascii: "/")
    }

    /// The path of a cookie that names none: that of the URL up to its last slash.
    static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash > path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether the host is an IP address, which has no parents: it contains colons, or its last label is a
    /// number, which is how whatwg.org's URL standard tells. `127.1` and `0x7f.1` are addresses to libcurl.
    static func isAddress(_ host: String) -> Bool {
        guard !host.contains(":"), let label = host.split(separator: ".").last?.lowercased()
        else { return host.contains(":") }
        guard !label.hasPrefix("0x") else { return label.dropFirst(2).allSatisfy(\.isHexDigit) }
        return label.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}

/// What RFC 6265 looks at in a URL.
struct CookieOrigin: Equatable, Sendable {
    /// In lower case; an IPv6 address without brackets.
    let host: String
    /// As it is on the wire, percent-encoded; `/` when empty.
    let path: String
    let isSecure: Bool

    /// - Returns: `nil` without a host, and for other schemes than http and https.
    init?(_ url: URL) {
        let scheme = url.scheme?.lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        guard let host = url.host?.lowercased(), !host.isEmpty else { return nil }
        let path = url.path(percentEncoded: true)
        self.host = host
        self.path = path.isEmpty ? "/" : path
        isSecure = scheme == "https"
    }

    /// Whether a document from the other host may be said to be of the same site. Without a list of public
    /// suffixes only a host and its own parents and children are known to be.
    func isSameSite(as other: CookieOrigin) -> Bool {
        CookieScope.host(host, matches: other.host) || CookieScope.host(other.host, matches: host)
    }
}

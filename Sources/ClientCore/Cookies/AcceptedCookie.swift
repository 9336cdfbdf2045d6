internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The identity of a cookie (RFC 6265 §5.3, step 11): a new cookie with the same key replaces the old one.
struct CookieKey: Hashable, Sendable {
    let name: String
    /// The lower-case domain. It starts with a dot if the cookie also applies to subdomains, as in Foundation.
    let domain: String
    let path: String

    var bareDomain: String { domain.hasPrefix(".") ? String(domain.dropFirst()) : domain }
}

extension CookieKey {
    init(_ cookie: HTTPCookie) {
        self.init(name: cookie.name, domain: cookie.domain.lowercased(), path: cookie.path)
    }
}

/// A cookie that the server is allowed to set, by RFC 6265 §5.3. For secure cookies and name prefixes, the stricter
/// rules of draft-ietf-httpbis-rfc6265bis §5.7 apply.
struct AcceptedCookie: Sendable {
    let key: CookieKey
    let parsed: SetCookie

    /// Returns `nil` if the server is not allowed to set the cookie.
    ///
    /// - Parameters:
    ///   - parsed: The parsed `Set-Cookie` field.
    ///   - origin: The URL of the response.
    init?(_ parsed: SetCookie, from origin: CookieOrigin) {
        guard !parsed.isSecure || origin.isSecure else { return nil }
        guard let domain = Self.domain(of: parsed, from: origin) else { return nil }
        guard Self.meetsPrefixConditions(of: parsed) else { return nil }
        let path = parsed.path ?? CookieScope.defaultPath(of: origin.path)
        key = CookieKey(name: parsed.name, domain: domain, path: path)
        self.parsed = parsed
    }

    /// Returns the domain to store; `nil` if the server is not allowed to set the domain. A leading dot marks a cookie
    /// that also applies to subdomains, as in Foundation.
    private static func domain(of parsed: SetCookie, from origin: CookieOrigin) -> String? {
        guard let domain = parsed.domain else { return origin.host }
        let isForHostOnly = CookieScope.isAddress(origin.host) || PublicSuffixes.contains(domain)
        guard !isForHostOnly else { return domain == origin.host ? origin.host : nil }
        return CookieScope.host(origin.host, matches: domain) ? "." + domain : nil
    }

    /// Whether the cookie meets the conditions of its name prefix, `__Host-` or `__Secure-`. Servers rely on them.
    private static func meetsPrefixConditions(of parsed: SetCookie) -> Bool {
        let name = parsed.name.lowercased()
        if name.hasPrefix("__host-") { return parsed.isSecure && parsed.domain == nil && parsed.path == "/" }
        return !name.hasPrefix("__secure-") || parsed.isSecure
    }

    /// Whether this cookie comes from a plain HTTP server and would replace or shadow a stored secure cookie. Such
    /// a cookie must be dropped (rfc6265bis §5.7, "leave secure cookies alone").
    func wouldHide(_ stored: HTTPCookie, from origin: CookieOrigin) -> Bool {
        guard !origin.isSecure, stored.needsSecurity, stored.name == key.name else { return false }
        let domain = CookieKey(stored).bareDomain
        return CookieScope.path(key.path, matches: stored.path)
            && (CookieScope.host(key.bareDomain, matches: domain)
                || CookieScope.host(domain, matches: key.bareDomain))
    }

    func isExpired(at now: Date) -> Bool {
        parsed.expires.map { $0 <= now } ?? false
    }
}

extension HTTPCookie {
    /// The word in the comment that marks a secure cookie.
    ///
    /// The comment has a second word, the value of ``created``. Browsers no longer use comments of cookies. Foundation
    /// writes and reads the comment correctly, unlike the attribute `Secure` and its own time of creation: after a
    /// restart, the cookie would be sent over plain HTTP and in a different order.
    private static let secureMark = "Secure"

    /// Creates the cookie to store. Returns `nil` if Foundation rejects its properties.
    convenience init?(_ record: CookieRecord) {
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: record.name,
            .value: record.value,
            .domain: record.domain,
            .path: record.path,
        ]
        properties[.expires] = record.expires
        if record.isSecure { properties[.secure] = "TRUE" }
        if let created = record.created {
            properties[.comment] = record.isSecure ? "\(Self.secureMark) \(created)" : "\(created)"
        }
        if record.isHTTPOnly { properties[HTTPCookiePropertyKey("HttpOnly")] = "TRUE" }
        self.init(properties: properties)
    }

    var record: CookieRecord {
        CookieRecord(
            name: name,
            value: value,
            domain: domain,
            path: path,
            expires: expiresDate,
            isSecure: needsSecurity,
            isHTTPOnly: isHTTPOnly,
            created: commentedTime
        )
    }

    /// Whether the cookie must only be sent over HTTPS.
    var needsSecurity: Bool { isSecure || commentWords.contains { $0 == Self.secureMark } }

    private var commentWords: [Substring] { comment?.split(separator: " ") ?? [] }

    func isExpired(at now: Date) -> Bool {
        expiresDate.map { $0 <= now } ?? false
    }

    /// Whether a request to `origin` sends the cookie.
    func isFor(_ origin: CookieOrigin, at now: Date) -> Bool {
        guard !isExpired(at: now), origin.isSecure || !needsSecurity else { return false }
        let key = CookieKey(self)
        let isForHost =
            key.domain.hasPrefix(".")
            ? CookieScope.host(origin.host, matches: key.bareDomain)
            : origin.host == key.domain
        return isForHost && CookieScope.path(origin.path, matches: path)
    }

    /// The time at which the cookie was first created, in seconds since 2001; 0 if unknown. For a cookie that the
    /// program has stored, the time at which it was last replaced. Used only for comparisons.
    var created: TimeInterval {
        commentedTime ?? properties?[HTTPCookiePropertyKey("Created")] as? TimeInterval ?? 0
    }

    /// The time in the comment; `nil` for a cookie that the program has stored.
    private var commentedTime: TimeInterval? {
        commentWords.last.flatMap { TimeInterval($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// The name and the value with which the cookie is sent, as an ``ExactText``. Those of a cookie that a server has
    /// set are exact texts, see ``CookieJar/store(_:from:mainDocumentURL:at:)``.
    var exactPair: String {
        let pair = "\(name)=\(value)"
        return commentedTime == nil ? ExactText.representing(pair) : pair
    }

    /// Whether replacing this cookie with the other one would change nothing. Both must have the same ``CookieKey``.
    func isSame(as other: HTTPCookie) -> Bool {
        value == other.value && expiresDate == other.expiresDate && needsSecurity == other.needsSecurity
            && isHTTPOnly == other.isHTTPOnly
    }
}

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

/// The Public Suffix List: the domains below which anyone can register a name, such as `com`, `co.uk` and `github.io`.
/// A cookie for such a domain would be sent to servers of other owners.
///
/// The list is that of libpsl, on which libcurl usually depends. It is loaded at the first cookie with a `Domain`.
/// Without libpsl, only domains of one label are known to be public suffixes.
enum PublicSuffixes {
    /// Whether libpsl is installed.
    static var isAvailable: Bool { list != nil }

    /// Returns whether a domain is a public suffix.
    ///
    /// - Parameter domain: The lower-case domain in ASCII. It may end with a dot.
    static func contains(_ domain: String) -> Bool {
        let name = domain.hasSuffix(".") ? String(domain.dropLast()) : domain
        return !name.contains(".") || list?.contains(name) ?? false
    }

    private static let list = LoadedList()
}

/// The list of libpsl. libpsl does not change a list that it has loaded, so any thread may read it.
private struct LoadedList: @unchecked Sendable {
    typealias Load = @convention(c) @Sendable (UnsafePointer<CChar>?) -> OpaquePointer?
    typealias Contains = @convention(c) @Sendable (OpaquePointer, UnsafePointer<CChar>) -> CInt

    private let list: OpaquePointer
    private let isPublicSuffix: Contains

    /// Returns `nil` if libpsl is not installed, or has no list.
    init?() {
        guard let library = SharedLibrary("libpsl.so.5"),
            // Without a file name, this is the newer one of the system's list and the list in the library.
            let load: Load = library.function("psl_latest"), let list = load(nil),
            let contains: Contains = library.function("psl_is_public_suffix")
        else { return nil }
        (self.list, isPublicSuffix) = (list, contains)
    }

    func contains(_ name: String) -> Bool { isPublicSuffix(list, name) == 1 }
}

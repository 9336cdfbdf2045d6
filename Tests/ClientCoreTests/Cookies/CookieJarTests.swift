internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable internal import ClientCore

/// Storing cookies from responses and sending them with requests.
@Suite struct CookieJarTests {
    private let storage: HTTPCookieStorage
    private let jar: CookieJar
    private let now = Date()

    /// In CI, missing software is an error.
    private static let isCI = ProcessInfo.processInfo.environment["CI"]?.isEmpty == false

    init() throws {
        storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        jar = CookieJar(storage, policy: .always)
    }

    private func take(_ fields: String..., from url: String) throws {
        try jar.store(fields, from: #require(URL(string: url)), mainDocumentURL: nil, at: now)
    }

    private func field(for url: String, after seconds: TimeInterval = 0) throws -> String? {
        try jar.field(for: #require(URL(string: url)), at: now.addingTimeInterval(seconds))
    }

    // MARK: Hosts

    @Test func `a cookie without a domain is sent only to its host`() throws {
        try take("a=b", from: "http://www.example.org/")
        #expect(try field(for: "http://WWW.example.org/x") == "a=b")
        #expect(try field(for: "http://www.example.org:8080/") == "a=b")
        #expect(try field(for: "http://example.org/") == nil)
        #expect(try field(for: "http://a.www.example.org/") == nil)
    }

    @Test func `a domain cookie is sent to all hosts of the domain`() throws {
        try take("a=b; Domain=Example.org", from: "http://www.example.org/")
        #expect(try field(for: "http://example.org/") == "a=b")
        #expect(try field(for: "http://a.b.example.org/") == "a=b")
        #expect(try field(for: "http://evilexample.org/") == nil)
        #expect(try field(for: "http://example.org.evil/") == nil)
    }

    @Test(arguments: [
        ("evil.org", "www.example.org"), ("org", "www.example.org"), (".org", "www.example.org"),
        ("org.", "www.example.org."), ("www.example.org", "example.org"), ("ample.org", "www.example.org"),
        ("0.0.1", "127.0.0.1"), ("0.1", "0x7f.0.0.1"), ("127.0.0.1", "127.0.0.2"), ("::1", "[::2]"),
        ("exämple.org", "www.example.org"),
    ])
    func `a server can set cookies only for its own domains`(domain: String, host: String) throws {
        try take("a=b; Domain=\(domain)", from: "http://\(host)/")
        #expect(storage.cookies?.isEmpty == true)
    }

    @Test(arguments: ["localhost", "127.0.0.1", "org"])
    func `a cookie whose domain is an address or one label is sent only to that host`(host: String) throws {
        try take("a=b; Domain=\(host)", from: "http://\(host)/")
        #expect(storage.cookies?.map(\.domain) == [host])
        #expect(try field(for: "http://\(host)/") == "a=b")
        #expect(try field(for: "http://sub.\(host)/") == nil)
    }

    @Test(
        .enabled(if: PublicSuffixes.isAvailable || isCI, "libpsl is not installed"),
        arguments: ["co.uk", "github.io", "test.kawasaki.jp"]
    )
    func `a cookie for a public suffix is stored only for the host of that name`(suffix: String) throws {
        try take("a=b; Domain=\(suffix)", from: "http://www.\(suffix)/")
        #expect(storage.cookies?.isEmpty == true)
        try take("a=b; Domain=\(suffix)", from: "http://\(suffix)/")
        #expect(storage.cookies?.map(\.domain) == [suffix])
        #expect(try field(for: "http://www.\(suffix)/") == nil)
    }

    @Test(arguments: ["example.co.uk", "city.kawasaki.jp", "example.internal"])
    func `a cookie for a domain below a public suffix is stored`(domain: String) throws {
        try take("a=b; Domain=\(domain)", from: "http://www.\(domain)/")
        #expect(try field(for: "http://other.\(domain)/") == "a=b")
    }

    @Test func `an IPv6 address has its own cookies`() throws {
        try take("a=b", from: "http://[::1]/")
        #expect(try field(for: "http://[::1]:8080/") == "a=b")
        #expect(try field(for: "http://[::2]/") == nil)
    }

    // MARK: Paths

    @Test(arguments: [
        ("/docs", "/docs", true), ("/docs", "/docs/x", true), ("/docs", "/docsx", false),
        ("/docs/", "/docs", false), ("/docs/", "/docs/x", true), ("/", "", true), ("/a b", "/a%20b", false),
    ])
    func `a cookie is sent to its path and the paths below it`(path: String, request: String, isSent: Bool)
        throws
    {
        try take("a=b; Path=\(path)", from: "http://example.org/")
        #expect(try field(for: "http://example.org\(request)") == (isSent ? "a=b" : nil))
    }

    @Test(arguments: [("/a/b/c", "/a/b"), ("/a/b/", "/a/b"), ("/a", "/"), ("", "/"), ("/", "/")])
    func `a cookie without a path applies to the directory of its URL`(path: String, expected: String) throws
    {
        try take("a=b", from: "http://example.org\(path)?/q/")
        #expect(storage.cookies?.map(\.path) == [expected])
    }

    @Test func `cookies with longer paths come first, then older cookies`() throws {
        try take("one=1; Path=/", "two=2; Path=/", "deep=3; Path=/a/b", from: "http://example.org/")
        try take("middle=4; Path=/a", "one=5; Path=/", from: "http://example.org/")
        #expect(try field(for: "http://example.org/a/b/c") == "deep=3; middle=4; one=5; two=2")
    }

    /// Foundation's own time of creation is that of the last replacement.
    @Test func `the order of cookies survives a restart`() throws {
        try take("one=1; Path=/", "two=2; Path=/", "three=3; Path=/", from: "http://example.org/")
        try take("one=4; Path=/", from: "http://example.org/")
        let properties = try #require(storage.cookies).reversed().map { try #require($0.properties) }
        let other = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        for var properties in properties {
            properties[HTTPCookiePropertyKey("Created")] = nil
            other.setCookie(try #require(HTTPCookie(properties: properties)))
        }
        let url = try #require(URL(string: "http://example.org/"))
        #expect(CookieJar(other, policy: .always).field(for: url) == "one=4; two=2; three=3")
    }

    @Test func `dot segments are removed from a path before it is compared`() throws {
        try take("x=1; Path=/x", "y=2; Path=/y", from: "http://example.org/")
        #expect(try field(for: "http://example.org/x/../y") == "y=2")
        try take("z=3", from: "http://example.org/x/../y/z")
        #expect(try field(for: "http://example.org/y/w") == "y=2; z=3")
    }

    // MARK: Lifetime

    @Test func `a cookie is sent until it expires`() throws {
        try take("a=b; Max-Age=10", "s=t", from: "http://example.org/")
        #expect(try field(for: "http://example.org/", after: 9) == "a=b; s=t")
        #expect(try field(for: "http://example.org/", after: 10) == "s=t")
    }

    @Test(arguments: ["Max-Age=0", "Expires=Thu, 01 Jan 1970 00:00:00 GMT"])
    func `an expiry date in the past deletes the cookie`(attribute: String) throws {
        try take("a=b; Path=/", "c=d; Path=/", from: "http://example.org/")
        try take("a=; Path=/; \(attribute)", from: "http://example.org/")
        #expect(storage.cookies?.map(\.name) == ["c"])
    }

    @Test func `expired cookies are removed when others are stored`() throws {
        try take("a=b; Max-Age=10", from: "http://example.org/")
        let url = try #require(URL(string: "http://example.com/"))
        jar.store(["c=d"], from: url, mainDocumentURL: nil, at: now.addingTimeInterval(10))
        #expect(storage.cookies?.map(\.name) == ["c"])
    }

    // MARK: Security

    @Test func `a secure cookie is accepted and sent only over https`() throws {
        try take("no=1; Secure", from: "http://example.org/")
        try take("yes=1; Secure", from: "https://example.org/")
        #expect(try field(for: "https://example.org/") == "yes=1")
        #expect(try field(for: "http://example.org/") == nil)
    }

    /// Foundation writes the `Secure` attribute to its file but does not read it back.
    @Test func `a secure cookie stays secure after it was read from the file`() throws {
        try take("a=b; Secure", from: "https://example.org/")
        let kept = try #require(storage.cookies?.first)
        storage.deleteCookie(kept)
        var properties = try #require(kept.properties)
        properties[.secure] = nil
        let readBack = try #require(HTTPCookie(properties: properties))
        #expect(!readBack.isSecure)
        storage.setCookie(readBack)
        #expect(try field(for: "http://example.org/") == nil)
        #expect(try field(for: "https://example.org/") == "a=b")
    }

    @Test func `plain HTTP does not replace, hide or delete a secure cookie`() throws {
        try take("a=b; Secure; Path=/p", from: "https://example.org/")
        try take("a=evil; Path=/p", "a=; Path=/p; Max-Age=0", from: "http://example.org/")
        try take("a=evil; Domain=example.org; Path=/p/q", from: "http://www.example.org/")
        #expect(try field(for: "https://example.org/p/q") == "a=b")
        try take("a=other; Path=/", "b=c; Path=/p", from: "http://example.org/")
        #expect(try field(for: "https://example.org/p") == "a=b; b=c; a=other")
    }

    @Test(arguments: [
        ("__Secure-a=1", false), ("__Secure-a=1; Secure", true), ("__SECURE-a=1", false),
        ("__Host-a=1; Secure; Path=/", true), ("__Host-a=1; Path=/", false), ("__Host-a=1; Secure", false),
        ("__Host-a=1; Secure; Path=/; Domain=example.org", false), ("__host-a=1; Secure; Path=/p", false),
    ])
    func `the conditions of a name prefix are enforced`(cookie: String, isKept: Bool) throws {
        try take(cookie, from: "https://example.org/")
        #expect(storage.cookies?.isEmpty == !isKept)
    }

    @Test func `other schemes have no cookies`() throws {
        try take("a=b", from: "ftp://example.org/")
        #expect(storage.cookies?.isEmpty == true)
        try take("a=b", from: "http://example.org/")
        #expect(try field(for: "ftp://example.org/") == nil)
    }

    // MARK: Policies

    @Test(arguments: [
        (HTTPCookie.AcceptPolicy.always, "http://other.org/", true),
        (.never, "", false),
        (.onlyFromMainDocumentDomain, "", true),
        (.onlyFromMainDocumentDomain, "http://www.example.org/", true),
        (.onlyFromMainDocumentDomain, "http://a.www.example.org/", true),
        (.onlyFromMainDocumentDomain, "http://example.org/", true),
        (.onlyFromMainDocumentDomain, "http://other.org/", false),
        (.onlyFromMainDocumentDomain, "file:///x", false),
    ])
    func `the accept policy determines whose cookies are stored`(
        policy: HTTPCookie.AcceptPolicy,
        document: String,
        isAccepted: Bool
    ) throws {
        let jar = CookieJar(storage, policy: policy)
        let url = try #require(URL(string: "http://www.example.org/"))
        jar.store(["a=b"], from: url, mainDocumentURL: URL(string: document))
        #expect(storage.cookies?.isEmpty == !isAccepted)
    }

    @Test func `the current policy of the program's storage applies to the storage that replaces it`()
        throws
    {
        let configured = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        let jar = CookieJar(storage, for: configured, policy: .always)
        let url = try #require(URL(string: "http://www.example.org/"))
        configured.cookieAcceptPolicy = .never
        jar.store(["a=b"], from: url, mainDocumentURL: nil)
        #expect(storage.cookies?.isEmpty == true)
        configured.cookieAcceptPolicy = .always
        jar.store(["a=b"], from: url, mainDocumentURL: nil)
        #expect(storage.cookies?.map(\.name) == ["a"])
    }

    // MARK: Cookies set by the program

    @Test func `the program's cookies are sent, and it reads all cookies`() throws {
        let mine = HTTPCookie(properties: [.name: "m", .value: "1", .domain: "example.org", .path: "/"])
        storage.setCookie(try #require(mine))
        try take("a=b; Max-Age=100; HttpOnly; Secure; Path=/", from: "https://example.org/")
        #expect(try field(for: "https://example.org/") == "m=1; a=b")
        let cookie = try #require(storage.cookies?.first { $0.name == "a" })
        #expect(cookie.isHTTPOnly)
        #expect(cookie.isSecure)
        #expect(cookie.domain == "example.org")
        #expect(abs(try #require(cookie.expiresDate).timeIntervalSince(now) - 100) < 0.01)
    }

    @Test func `an unchanged cookie is not stored again`() throws {
        try take("a=b; Max-Age=10", from: "http://example.org/")
        let first = try #require(storage.cookies?.first)
        try take("a=b; Max-Age=10", from: "http://example.org/")
        #expect(storage.cookies?.first === first)
        try take("a=b; Max-Age=20", from: "http://example.org/")
        #expect(storage.cookies?.first !== first)
    }

    @Test func `jars with the same storage can be used concurrently`() throws {
        let jars = [jar, CookieJar(storage, policy: .always)]
        let urls = try (0..<8).map { try #require(URL(string: "http://h\($0).example/")) }
        DispatchQueue.concurrentPerform(iterations: urls.count) { index in
            let (jar, url) = (jars[index % 2], urls[index])
            for round in 0..<50 {
                jar.store(["a\(round % 5)=\(round)"], from: url, mainDocumentURL: nil)
                _ = jar.field(for: url)
            }
        }
        for url in urls { #expect(jar.field(for: url) == "a0=45; a1=46; a2=47; a3=48; a4=49") }
    }

    // MARK: Limits

    @Test func `at most 50 cookies per response and 180 per domain are kept, the newest`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        for batch in 0..<4 {
            let fields = (0..<60).map { "c\(batch)-\($0)=v" }
            jar.store(fields, from: url, mainDocumentURL: nil)
        }
        let names = Set(try #require(storage.cookies).map(\.name))
        #expect(names.count == 180)
        #expect(!names.contains("c1-50"))
        #expect(!names.contains("c0-19"))
        #expect(names.contains("c0-20"))
        #expect(names.contains("c3-49"))
    }

    @Test func `at most 3000 cookies are kept, the newest`() throws {
        for number in 0..<3010 {
            let properties: [HTTPCookiePropertyKey: Any] = [
                .name: "n\(number)", .value: "v", .domain: "h\(number).example", .path: "/",
            ]
            storage.setCookie(try #require(HTTPCookie(properties: properties)))
        }
        try take("a=b", from: "http://example.org/")
        let names = Set(try #require(storage.cookies).map(\.name))
        #expect(names.count == 3000)
        #expect(names.contains("a"))
        #expect(!names.contains("n10"))
        #expect(names.contains("n11"))
    }

    @Test func `a Cookie field is limited to the size of 50 maximum-size cookies`() throws {
        let value = String(repeating: "v", count: 4000)
        for batch in 0..<2 {
            let fields = (0..<50).map { "c\(batch)-\($0)=\(value)" }
            let url = try #require(URL(string: "http://example.org/"))
            jar.store(fields, from: url, mainDocumentURL: nil)
        }
        let field = try #require(try field(for: "http://example.org/"))
        #expect(field.utf8.count <= 50 * 4096)
        #expect(field.split(separator: ";").count == 51)
    }
}

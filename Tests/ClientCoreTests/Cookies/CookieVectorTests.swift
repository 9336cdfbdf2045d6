internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable internal import ClientCore

/// Responses with `Set-Cookie` fields, and the `Cookie` field of a request that follows, for the rules of RFC 6265 §5.
///
/// The other suites test the rules that need more than one response, and the parsers alone.
@Suite struct CookieVectorTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        /// The URL of most responses and requests. Cookies without a `Path` get the path `/dir`.
        static let page = "http://www.example.org/dir/page"

        /// The rule that the vector tests.
        let testDescription: String
        let fields: [String]
        let sent: String?
        let origin: String
        let target: String
        let delay: TimeInterval

        /// - Parameters:
        ///   - rule: The rule.
        ///   - fields: The values of the response's `Set-Cookie` fields.
        ///   - sent: The value of the request's `Cookie` field; `nil` if it has none.
        ///   - origin: The URL of the response.
        ///   - target: The URL of the request.
        ///   - delay: The time between the response and the request, in seconds.
        init(
            _ rule: String,
            _ fields: [String],
            sends sent: String?,
            from origin: String = Vector.page,
            to target: String = Vector.page,
            after delay: TimeInterval = 0
        ) {
            testDescription = rule
            self.fields = fields
            self.sent = sent
            self.origin = origin
            self.target = target
            self.delay = delay
        }
    }

    private func check(_ vector: Vector) throws {
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        let jar = CookieJar(storage, policy: .always)
        let now = Date()
        let origin = try #require(URL(string: vector.origin))
        let target = try #require(URL(string: vector.target))
        jar.store(vector.fields, from: origin, mainDocumentURL: nil, at: now)
        #expect(jar.field(for: target, at: now.addingTimeInterval(vector.delay)) == vector.sent)
    }

    // MARK: Fields (§5.2)

    private static let fields: [Vector] = [
        Vector("a semicolon ends the value", ["a=b;c=d"], sends: "a=b"),
        Vector("a comma does not end a cookie", ["a=b, c=d"], sends: "a=b, c=d"),
        Vector("quotation marks belong to the value", ["a=\"b\""], sends: "a=\"b\""),
        Vector("a semicolon in quotation marks ends the value", ["a=\"b;c\""], sends: "a=\"b"),
        Vector("spaces within a name and a value are kept", ["a b=c d"], sends: "a b=c d"),
        Vector("a value may be empty", ["a="], sends: "a="),
        Vector("the first pair is never an attribute", ["Path=/"], sends: "Path=/"),
        Vector("names distinguish case", ["a=b", "A=c"], sends: "a=b; A=c"),
        Vector("each field is one cookie", ["a=b", "c=d"], sends: "a=b; c=d"),
        Vector("an invalid field does not affect others", ["a", "=b", "c=d"], sends: "c=d"),
        Vector(
            "empty attributes are ignored",
            ["a=b;; ;Path=/"],
            sends: "a=b",
            to: "http://www.example.org/"
        ),
        Vector(
            "spaces around names and values of attributes are ignored",
            ["a=b; \tPath \t=\t / "],
            sends: "a=b",
            to: "http://www.example.org/"
        ),
        Vector(
            "the value of an attribute may contain an equals sign",
            ["a=b; Path=/x=y"],
            sends: "a=b",
            to: "http://www.example.org/x=y/z"
        ),
        Vector(
            "unknown attributes are ignored",
            ["a=b; SameSite=Strict; Partitioned; Priority=High; Version=1; Comment=x"],
            sends: "a=b"
        ),
    ]

    @Test(arguments: fields) func `a field is parsed`(vector: Vector) throws { try check(vector) }

    // MARK: Lifetime (§5.1.1, §5.2.1, §5.2.2)

    private static let past = "Thu, 01 Jan 1970 00:00:00 GMT"
    private static let future = "Fri, 01 Jan 2999 00:00:00 GMT"
    /// More than the maximum lifetime of a cookie with an expiry date, which is 400 days.
    private static let longTime: TimeInterval = 401 * 86_400

    private static let lifetimes: [Vector] = [
        Vector("a cookie without a date does not expire", ["a=b"], sends: "a=b", after: longTime),
        Vector("a cookie with a date expires", ["a=b; Expires=\(future)"], sends: nil, after: longTime),
        Vector("a date may be in quotation marks", ["a=b; Expires=\"\(past)\""], sends: nil),
        Vector(
            "the last date is used",
            ["a=b; Expires=\(past); Expires=\(future)", "c=d; Expires=\(future); Expires=\(past)"],
            sends: "a=b"
        ),
        Vector("an invalid date is ignored", ["a=b; Expires=\(past); Expires=soon"], sends: nil),
        Vector("the last Max-Age is used", ["a=b; Max-Age=0; Max-Age=60"], sends: "a=b"),
        Vector("an invalid Max-Age is ignored", ["a=b; Max-Age=60; Max-Age=x"], sends: nil, after: 61),
        Vector("a Max-Age is decimal", ["a=b; Max-Age=0060"], sends: "a=b", after: 59),
        Vector("a Max-Age with leading zeros expires", ["a=b; Max-Age=0060"], sends: nil, after: 61),
        Vector(
            "a Max-Age in quotation marks is ignored",
            ["a=b; Max-Age=\"0\""],
            sends: "a=b",
            after: longTime
        ),
        Vector(
            "a cookie without a date replaces one with a date",
            ["a=b; Max-Age=60", "a=c"],
            sends: "a=c",
            after: 61
        ),
    ]

    @Test(arguments: lifetimes) func `a cookie expires`(vector: Vector) throws { try check(vector) }

    // MARK: Domains (§5.1.2, §5.1.3, §5.2.3)

    private static let idnPage = "http://www.exämple.org/dir/page"

    private static let domains: [Vector] = [
        Vector(
            "the host itself can be a domain",
            ["a=b; Domain=www.example.org"],
            sends: "a=b",
            to: "http://sub.www.example.org/dir/"
        ),
        Vector("only the first dot is removed", ["a=b; Domain=..example.org"], sends: nil),
        Vector("a dot at the end belongs to the domain", ["a=b; Domain=example.org."], sends: nil),
        Vector("a domain has no port", ["a=b; Domain=www.example.org:80"], sends: nil),
        Vector("the last domain is used", ["a=b; Domain=evil.com; Domain=example.org"], sends: "a=b"),
        Vector("an earlier domain is not used", ["a=b; Domain=example.org; Domain=evil.com"], sends: nil),
        Vector(
            "after an empty domain, the cookie is for the host only",
            ["a=b; Domain=example.org; Domain="],
            sends: nil,
            to: "http://other.example.org/dir/"
        ),
        Vector(
            "a domain is compared in its ASCII form",
            ["a=b; Domain=xn--exmple-cua.org"],
            sends: "a=b",
            from: idnPage,
            to: idnPage
        ),
        Vector(
            "a domain in its Unicode form is not converted",
            ["a=b; Domain=exämple.org"],
            sends: nil,
            from: idnPage,
            to: idnPage
        ),
    ]

    @Test(arguments: domains) func `a domain is compared with the host`(vector: Vector) throws {
        try check(vector)
    }

    // MARK: Paths (§5.1.4, §5.2.4)

    private static let paths: [Vector] = [
        Vector(
            "a server may set any path",
            ["a=b; Path=/other"],
            sends: "a=b",
            to: "http://www.example.org/other/page"
        ),
        Vector("paths distinguish case", ["a=b; Path=/Dir"], sends: nil),
        Vector(
            "percent-encoding is compared as it is",
            ["a=b; Path=/%7Edir", "c=d; Path=/~dir"],
            sends: "a=b",
            to: "http://www.example.org/%7Edir/page"
        ),
        Vector(
            "the query is not part of the path",
            ["a=b; Path=/dir/page?x"],
            sends: nil,
            to: "\(Vector.page)?x"
        ),
        Vector("an empty path is ignored", ["a=b; Path="], sends: "a=b"),
        Vector(
            "with an empty path, the directory of the URL is used",
            ["a=b; Path="],
            sends: nil,
            to: "http://www.example.org/"
        ),
        Vector(
            "a path in quotation marks is ignored",
            ["a=b; Path=\"/\""],
            sends: nil,
            to: "http://www.example.org/"
        ),
    ]

    @Test(arguments: paths) func `a path is compared with that of the request`(vector: Vector) throws {
        try check(vector)
    }

    // MARK: Storage (§5.2.5, §5.3, §5.4)

    private static let securePage = "https://www.example.org/dir/page"

    private static let stored: [Vector] = [
        Vector("Secure has no value", ["a=b; Secure=false"], sends: nil, from: securePage),
        Vector(
            "a secure cookie is sent over https",
            ["a=b; Secure=false"],
            sends: "a=b",
            from: securePage,
            to: securePage
        ),
        Vector(
            "other cookies of an https server are sent over http",
            ["a=b"],
            sends: "a=b",
            from: securePage
        ),
        Vector("a cookie replaces one with its name, domain and path", ["a=b", "a=c"], sends: "a=c"),
        Vector("other paths are other cookies", ["a=b; Path=/", "a=c; Path=/dir"], sends: "a=c; a=b"),
        Vector(
            "a cookie for the host and one for its domain are two cookies",
            ["a=b", "a=c; Domain=www.example.org"],
            sends: "a=b; a=c"
        ),
        Vector("another path deletes nothing", ["a=b; Path=/", "a=; Path=/dir; Max-Age=0"], sends: "a=b"),
        Vector("another domain deletes nothing", ["a=b; Domain=example.org", "a=; Max-Age=0"], sends: "a=b"),
        Vector("an expired cookie is not stored", ["a=b; Max-Age=0"], sends: nil),
    ]

    @Test(arguments: stored) func `a cookie is stored and sent`(vector: Vector) throws { try check(vector) }

    // MARK: Foundation

    /// `HTTPCookieStorage` identifies a cookie by a single text: its domain, its path and its name without separators.
    @Test func `of two cookies whose path and name together are equal, the storage keeps the later one`()
        throws
    {
        let fields = ["b=1; Path=/a", "ab=2; Path=/"]
        try check(Vector("", fields, sends: "ab=2", to: "http://www.example.org/a/page"))
    }
}

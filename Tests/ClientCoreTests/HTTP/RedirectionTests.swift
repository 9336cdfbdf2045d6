internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable internal import ClientCore

/// How a redirect changes a request.
@Suite struct RedirectionTests {
    private func target(_ location: String, from base: String = "http://a/b/c/d;p?q") throws -> String? {
        let redirection = try Redirection(of: URLRequest(base), status: 302, location: location)
        return redirection?.request.url?.absoluteString
    }

    // MARK: Methods

    @Test(arguments: [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"),
        (308, "POST", "POST"), (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (303, "PUT", "GET"),
        (303, "DELETE", "GET"), (303, "HEAD", "HEAD"), (301, "HEAD", "HEAD"), (303, "GET", "GET"),
        (307, "PATCH", "PATCH"), (308, "HEAD", "HEAD"),
    ])
    func `the status determines the next method`(status: Int, method: String, expected: String) throws {
        let request = URLRequest("http://a/", method, body: Data("x".utf8))
        let redirection = try #require(try Redirection(of: request, status: status, location: "/b"))
        #expect(redirection.request.httpMethod == expected)
        #expect(redirection.keepsBody == (method == expected))
        #expect(redirection.request.httpBody == (method == expected ? Data("x".utf8) : nil))
    }

    @Test(arguments: [200, 201, 300, 304, 305, 306, 309, 399, 401])
    func `other statuses are not redirects`(status: Int) throws {
        #expect(try Redirection(of: URLRequest("http://a/"), status: status, location: "/b") == nil)
    }

    @Test(arguments: [nil, ""])
    func `a missing or empty location is not a redirect`(location: String?) throws {
        #expect(try Redirection(of: URLRequest("http://a/"), status: 302, location: location) == nil)
    }

    @Test func `dropping the body drops the fields that describe it`() throws {
        var request = URLRequest("http://a/", "POST", body: Data("x".utf8))
        let about = ["content-type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Expect"]
        for field in about + ["Accept"] { request.setValue("1", forHTTPHeaderField: field) }
        let changed = try Redirection(of: request, status: 303, location: "/b")?.request
        #expect(changed?.allHTTPHeaderFields == ["Accept": "1"])
        let kept = try Redirection(of: request, status: 307, location: "/b")?.request
        #expect(kept?.allHTTPHeaderFields == request.allHTTPHeaderFields)
    }

    @Test func `a body stream is kept or dropped like a body`() throws {
        var request = URLRequest("http://a/", "POST")
        request.httpBodyStream = InputStream(data: Data([1]))
        #expect(try Redirection(of: request, status: 302, location: "/")?.request.httpBodyStream == nil)
        #expect(try Redirection(of: request, status: 307, location: "/")?.request.httpBodyStream != nil)
    }

    // MARK: Origins

    @Test(arguments: [
        ("/other", false), ("HTTPS://Example.org/x", false), ("https://example.org:443/", false),
        ("//example.org/", false), ("http://example.org/", true), ("https://example.org:444/", true),
        ("https://www.example.org/", true), ("https://example.org./", true),
        ("http://example.org:443/", true),
    ])
    func `another scheme, host or port is another origin`(location: String, crosses: Bool) throws {
        var request = URLRequest("https://example.org/", "GET")
        let secrets = ["authorization", "Proxy-Authorization", "COOKIE", "Host"]
        for field in secrets + ["Accept"] { request.setValue("1", forHTTPHeaderField: field) }
        let redirection = try #require(try Redirection(of: request, status: 307, location: location))
        #expect(redirection.crossesOrigin == crosses)
        let fields = try #require(redirection.request.allHTTPHeaderFields)
        #expect(fields == (crosses ? ["Accept": "1"] : request.allHTTPHeaderFields))
    }

    @Test func `the request's other properties are kept`() throws {
        var request = URLRequest("http://a/", "GET")
        request.timeoutInterval = 7
        request.mainDocumentURL = URL(string: "http://main/")
        let next = try Redirection(of: request, status: 301, location: "http://b/")?.request
        #expect(next?.timeoutInterval == 7)
        #expect(next?.mainDocumentURL == request.mainDocumentURL)
    }

    // MARK: Locations

    /// The examples of RFC 3986 §5.4, except empty references and those with another scheme.
    @Test(arguments: [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
        ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
        ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
        ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/./x", "http://a/b/c/g#s/./x"), ("g#s/../x", "http://a/b/c/g#s/../x"),
    ])
    func `a reference is resolved by RFC 3986`(location: String, expected: String) throws {
        #expect(try target(location) == expected)
    }

    @Test(arguments: [
        ("/a b", "http://a/a%20b"), ("/ä", "http://a/%C3%A4"), ("/%C3%A4 ä", "http://a/%C3%A4%20%C3%A4"),
        ("/%zz%41", "http://a/%25zz%41"), ("/x%", "http://a/x%25"),
        ("/x[1]|{}", "http://a/x%5B1%5D%7C%7B%7D"),
        ("?a=[1] 2", "http://a/b/c/d;p?a=%5B1%5D%202"), ("\t /x ", "http://a/x"),
        ("/\u{FFFD}\u{1}", "http://a/%EF%BF%BD%01"),
        ("//exämple.org/a%20ä", "http://xn--exmple-cua.org/a%20%C3%A4"),
        ("http://[::1]:8080/[", "http://[::1]:8080/%5B"), ("/a//ä", "http://a/a//%C3%A4"),
        ("/\\evil.org", "http://a/%5Cevil.org"), ("?u=http://ä/", "http://a/b/c/d;p?u=http://%C3%A4/"),
    ])
    func `characters that a URL must not contain are encoded once`(location: String, expected: String) throws
    {
        #expect(try target(location) == expected)
    }

    private static let barePercents: [(location: String, base: String?, sent: String?)] = [
        ("/%zz%41", nil, "http://a/%zz%41"), ("/x%", nil, "http://a/x%"), ("/%25zz", nil, nil),
        ("?a=%&b=%4", nil, "http://a/b/c/d;p?a=%&b=%4"), ("/%80%81%", nil, "http://a/%80%81%"),
        ("/%/../g%#%", nil, "http://a/g%#%"), ("?y", "http://a/b/%zz?q", "http://a/b/%zz?y"),
        ("g", "http://a/%/c?%", "http://a/%/g"), ("g%", "http://a/%/c", "http://a/%/g%"),
        ("/g", "http://a/%zz", nil), ("//b/%", "http://a/%", "http://b/%"),
    ]

    /// - Parameter base: The URL of the response as it was sent; `nil` for a URL without such a percent sign.
    @Test(arguments: barePercents)
    func `a percent sign that begins no escape is sent as it is`(
        location: String,
        base: String?,
        sent: String?
    ) throws {
        let url = "http://a/b/c/d;p?q"
        let redirection = try Redirection(
            of: URLRequest(base?.replacing("%", with: "%25") ?? url),
            sentAs: base,
            status: 302,
            location: location
        )
        #expect(redirection?.sentText == sent)
    }

    @Test func `a percent sign that begins no escape is encoded if no other escape is free`() throws {
        let all = (0x80...0xff).map { "%" + String($0, radix: 16) }.joined()
        let redirection = try Redirection(of: URLRequest("http://a/"), status: 302, location: "/\(all)%")
        #expect(redirection?.sentText == nil)
        #expect(redirection?.request.url?.absoluteString == "http://a/\(all)%25")
    }

    @Test func `a fragment is inherited unless the location has one`() throws {
        #expect(try target("/x", from: "http://a/y#%C3%A4b") == "http://a/x#%C3%A4b")
        #expect(try target("/x#c", from: "http://a/y#b") == "http://a/x#c")
        #expect(try target("/x#", from: "http://a/y#b") == "http://a/x#")
    }

    @Test func `the location's user and password are dropped`() throws {
        #expect(try target("/x", from: "http://u:p@a/") == "http://a/x")
        #expect(try target("http://u:p%20@b:81/%20?%20#%20") == "http://b:81/%20?%20#%20")
    }

    @Test(arguments: ["mailto:x", "file:///etc/passwd", "ftp://a/", "x:y", "javascript:alert(1)"])
    func `a location with another scheme is not supported`(location: String) throws {
        let error = #expect(throws: URLError.self) { try target(location) }
        #expect(error?.code == .unsupportedURL)
        #expect(error?.localizedDescription.contains("`\(location)`") == true)
    }

    @Test(arguments: [
        "http:g", "http:/g", "http:///g", "///g", "//", "http://", "https:", "http://a:99999/", "http://a:0/",
        "http://a:x/", "http://h ost/", "http://h%20ost/", "http://h\\@evil/", "http://a%2fb/",
        "http://a%00b/",
        "http://[::1/",
    ])
    func `a location without a host is an invalid response`(location: String) throws {
        let error = #expect(throws: URLError.self) { try target(location) }
        #expect(error?.code == .badServerResponse)
    }

    @Test func `the error truncates a long location`() throws {
        let error = #expect(throws: URLError.self) {
            try target("x:" + String(repeating: "y", count: 100_000))
        }
        #expect(try #require(error).localizedDescription.count < 300)
    }
}

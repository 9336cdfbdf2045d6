internal import ClientCore
internal import Foundation
internal import NetwatchTransport
internal import Testing

@testable internal import OfflineQueue

/// Where a credential may be sent, what it adds to a request, and what is removed from a request before it is stored.
@Suite struct CredentialValueTests {
    private func matches(_ pattern: String, _ url: String) throws -> Bool {
        let pattern = try OriginPattern(pattern)
        return (try? TransferOrigin(url: url)).map(pattern.matches) ?? false
    }

    @Test(arguments: [
        ("https://api.example.com", "https://api.example.com/a?b", true),
        ("https://API.example.com/", "https://api.EXAMPLE.com:443/", true),
        ("https://api.example.com", "http://api.example.com:443/", false),
        ("https://api.example.com", "https://api.example.com:8443/", false),
        ("https://api.example.com:8443", "https://api.example.com:8443/", true),
        ("https://api.example.com", "https://api.example.com./", false),
        ("https://api.example.com", "https://api.example.com.evil.example/", false),
        ("https://example.com", "https://api.example.com/", false),
        ("https://*.example.com", "https://api.example.com/", true),
        ("https://*.example.com", "https://a.b.example.com/", true),
        ("https://*.example.com", "https://example.com/", false),
        ("https://*.example.com", "https://evilexample.com/", false),
        ("https://*.example.com", "https://evil.example%3A443.example.com/", false),
        ("https://*.dc1", "https://a.dc1/", true),
        ("http://[::1]:8080", "http://[::1]:8080/", true),
        ("http://127.0.0.1", "http://127.0.0.1:80/", true),
    ])
    func `a pattern matches exactly the origins that it describes`(
        pattern: String,
        url: String,
        isMatch: Bool
    ) throws {
        #expect(try matches(pattern, url) == isMatch)
    }

    @Test(arguments: [
        "", "api.example.com", "ftp://a.example", "https://", "https://*", "https://a.*.example",
        "https://*a.example",
        "https://*.0.0.1", "https://*.[::1]", "https://a.example/path", "https://a.example?x",
        "https://user@a.example",
        "https://a.example:0", "https://bücher.example", "https://*.*.example", "*",
    ])
    func `text that is not an origin is refused and quoted`(text: String) {
        let error = #expect(throws: QueueError.self) { try OriginPattern(text) }
        #expect(error?.message.contains("`\(text)`") == true)
    }

    @Test(arguments: ["https://bücher.example", "https://*.bücher.example:1"])
    func `the refusal of an international name says how it must be written`(text: String) {
        let error = #expect(throws: QueueError.self) { try OriginPattern(text) }
        #expect(error?.message.hasSuffix("must be written as `xn--bcher-kva.example`") == true)
    }

    private func sent(_ value: CredentialValue, _ url: String = "https://a.example/b") -> String {
        let (url, headers) = value.added(
            to: url,
            [.init(name: "authorization", value: "old"), .init(name: "X", value: "1")]
        )
        return ([url] + headers.map { "\($0.name): \($0.value)" }).joined(separator: "|")
    }

    @Test func `each kind of value replaces the field of its name, or adds an item to the query`() {
        let url = "https://a.example/b"
        #expect(sent(.bearer("t")) == "\(url)|X: 1|Authorization: Bearer t")
        #expect(sent(.basic(user: "u", password: "p:ä")) == "\(url)|X: 1|Authorization: Basic dTpwOsOk")
        #expect(sent(.header(name: "x", value: "2")) == "\(url)|authorization: old|x: 2")
        let query = CredentialValue.queryItem(name: "key", value: "a&b=c ä")
        let item = "key=a%26b%3Dc%20%C3%A4"
        for (before, after) in [
            ("", "?\(item)"), ("?", "?\(item)"), ("?a=1", "?a=1&\(item)"), ("?a#f", "?a&\(item)#f"),
        ] {
            #expect(sent(query, url + before).hasPrefix("\(url)\(after)|"), "\(before)")
        }
    }

    @Test(arguments: [
        CredentialValue.bearer(""), .bearer("a b"), .bearer("a\nb"), .basic(user: "a:b", password: "p"),
        .basic(user: "a", password: ""), .header(name: "Host", value: "a"), .header(name: "a b", value: "a"),
        .header(name: "X", value: "a\r\nb"), .queryItem(name: "", value: "a"),
        .queryItem(name: "a", value: ""),
    ])
    func `a value that cannot be sent is refused`(value: CredentialValue) {
        #expect(value.fault != nil)
        #expect(throws: QueueError.self) { try QueueCredential(value, origins: ["https://a.example"]) }
    }

    @Test func `the text of a value contains no secret`() {
        var dumped = ""
        for value in [
            CredentialValue.bearer("hush"), .basic(user: "hush", password: "hush"),
            .header(name: "X", value: "hush"),
            .queryItem(name: "q", value: "hush"),
        ] {
            dump(value, to: &dumped)
            dumped += "\(value) \(String(reflecting: value)) \([value])"
        }
        #expect(!dumped.contains("hush"), "\(dumped)")
    }

    // MARK: Secrets in requests

    private static let secretFields = [
        "Authorization", "COOKIE", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "PRIVATE-TOKEN",
        "X-Vault-Token", "X-Auth-Key", "X-Amz-Security-Token", "apikey", "X-Auth",
        "X-Session-Id",
    ]

    private static func request(_ url: String, _ fields: [String] = []) -> QueueRequest {
        let headers = (fields + ["X-Other"]).map { QueueRequest.Header(name: $0, value: "hush") }
        return QueueRequest(method: "POST", url: url, headers: headers)
    }

    private static let secretRequests: [QueueRequest] =
        secretFields.map { request("https://a.example/", [$0]) }
        + SecretQueryItems.names.map { request("https://a.example/?a=1&\($0.uppercased())=hush#f") }
        + ["https://user:hush@a.example/", "https://hush@a.example", "https://a.example/?t%6Fken=hush"].map {
            request($0)
        }

    @Test(arguments: secretRequests)
    func `a request with a secret is refused with a hint, or its secret is removed`(request: QueueRequest)
        throws
    {
        let refusal = #expect(throws: QueueError.self) { try NewRequest(request) }
        #expect(refusal?.message.contains("name a credential") == true, "\(refusal as Any)")
        #expect(refusal?.message.contains("hush") == false)
        var options = EnqueueOptions()
        options.credential = "name"
        let stored = try NewRequest(request, options: options)
        #expect(!stored.url.contains("hush") && stored.headers == "X-Other: hush\n", "\(stored.url)")
        #expect(stored.lane.origin.host == "a.example")
    }

    @Test(arguments: [
        ("https://a.example/p?a=1&token=x&b=%41#f", "https://a.example/p?a=1&b=%41#f"),
        ("https://u:p@a.example/@?sig=1", "https://a.example/@"),
        ("https://a.example/?&token=x&", "https://a.example/?&"),
        ("https://a.example/?token&tokens=1&a=token=b", "https://a.example/?token&tokens=1&a=token=b"),
    ])
    func `the rest of a URL stays as it is`(given: String, kept: String) throws {
        var options = EnqueueOptions()
        options.credential = "name"
        #expect(try NewRequest(Self.request(given), options: options).url == kept)
    }

    @Test func `a request of an older version is valid although it has a secret`() throws {
        _ = try NewRequest(Self.request("https://a.example/?token=x", ["X-Api-Key"]), for: .import)
    }

    @Test(arguments: [
        "https://a.example/?code=1&id=2&page_token=3&hash=4&session=5&keys=6&keyword=7&signed=8",
        "https://a.example/token/secret?key&sort=key",
    ])
    func `a request with items that are no secrets is accepted`(url: String) throws {
        let names = ["X-Page-Token", "X-Routing-Key", "X-CSRF-Token", "X-Hub-Signature-256", "X-Request-Key"]
        let request = Self.request(url, names)
        #expect(try NewRequest(request).url == url)
    }

    @Test(arguments: ["", ".", "..", ".a", "a/b", "a b", "ä", "a\0", String(repeating: "a", count: 65)])
    func `a name that cannot be a file name is refused`(name: String) throws {
        var options = EnqueueOptions()
        options.credential = name
        let refusal = #expect(throws: QueueError.self) {
            try NewRequest(Self.request("https://a.example/"), options: options)
        }
        #expect(refusal?.code == .invalidOption)
    }
}

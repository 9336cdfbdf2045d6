internal import ClientCore
internal import Foundation
internal import OfflineQueue
internal import Testing

@Suite struct RequestCheckTests {
    private func code(
        method: String = "POST",
        url: String = "https://example.com/",
        headers: [QueueRequest.Header] = [],
        body: Data = Data(),
        options: EnqueueOptions = EnqueueOptions()
    ) -> QueueError.Code? {
        let request = QueueRequest(method: method, url: url, headers: headers, body: body)
        do {
            _ = try NewRequest(request, options: options)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(arguments: [
        "", "example.com", "/path", "ftp://example.com/", "file:///etc/passwd", "https://", "https:///x",
        "https://user@example.com/", "https://user:secret@example.com/", "https://example.com/a b",
        "https://example.com:99999/", "https://example.com/\r\nX: y", "https://[::1/",
        "http://*/", "https://*.example.com/", "http://%2a/", "http://a!b/", "http://a,b/",
        "http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://192.0.2/", "http://1.2.3.256/",
    ])
    func `an invalid URL is refused, and so is a URL with credentials`(url: String) {
        #expect(code(url: url) == .invalidURL)
    }

    @Test(arguments: [
        "ftp://user:hush@a.example/", "https://user:hu/sh@a.example/", "https://user:hu#sh@a.example/",
        "user:hush@a.example", "https://user:hush@\u{301}a.example/",
        "https://a b.example/?X-Amz-Signature=hush", "ftp://a.example/?token=hush",
        "https:///?sig=hush", "https://a.example:99999/?sig=hush",
    ])
    func `the message about an invalid URL contains no secret`(url: String) {
        for purpose in [RequestChecks.Purpose.store, .send] {
            let error = #expect(throws: QueueError.self) {
                try RequestChecks.check(QueueRequest(method: "GET", url: url), for: purpose)
            }
            let message = error?.message ?? ""
            #expect(
                error?.code == .invalidURL && !message.contains("hu") && !message.contains("sh@"),
                "\(message)"
            )
        }
    }

    @Test func `the host of an origin has the form in which it is looked up`() throws {
        let hosts = ["XN--bcher-kva.example", "[FE80::1%25eth0]", "A.example."].map { "http://\($0)/" }
        #expect(
            try hosts.map { try Origin(url: $0).host }
                == ["xn--bcher-kva.example", "fe80::1%eth0", "a.example."]
        )
        #expect(Origin.host(named: "xn--bcher-kva.example") == "xn--bcher-kva.example")
    }

    @Test func `the messages about the hosts of URLs say what is accepted`() {
        func message(_ url: String) -> String {
            let error = #expect(throws: QueueError.self) {
                try RequestChecks.check(QueueRequest(method: "GET", url: url), for: .send)
            }
            return error?.message ?? ""
        }
        let name = " is not a URL; an international name must be written as `xn--bcher-kva.example`"
        #expect(message("http://b%C3%BCcher.example/").hasSuffix("written as `xn--bcher-kva.example`"))
        #expect(message("http://bücher.example/a") == "`http://bücher.example/a`" + name)
        let user = message("http://u:hush@bücher.example:80/")
        #expect(user.hasSuffix(name) && !user.contains("hush"))
        #expect(!message("http://ü:hush/ü@a.example/").contains("hush"))
        #expect(!message("http://ü:hush/ü@a.example/").contains("xn--"))
        let address = "the host `127.1` looks like an IP address but is not a valid one"
        #expect(message("http://127.1/") == address)
    }

    @Test(arguments: [
        "http://example.com", "HTTPS://EXAMPLE.com:8443/a?b#c", "http://[::1]:80/", "http://1.2.3.4",
        "http://a_b.example.com./", "http://xn--bcher-kva.example/",
    ])
    func `unusual but valid URLs are accepted`(url: String) {
        #expect(code(url: url) == nil)
    }

    @Test func `different spellings of an origin are equal`() throws {
        #expect(try Origin(url: "HTTPS://EXAMPLE.com/a") == Origin(url: "https://example.com:443/b"))
        #expect(try Origin(url: "http://[::1]/").host == "::1")
    }

    @Test(arguments: ["", "GE T", "GET\r\n", "PÖST", "CONNECT", "connect", "TRACE"])
    func `CONNECT, TRACE and methods that are not tokens are refused`(method: String) {
        #expect(code(method: method) == .invalidMethod)
    }

    /// Older versions accepted such requests, and one of them must not prevent the import of a whole export.
    @Test func `a request that can only be stored by an older version is imported`() throws {
        let url = "https://a.example/"
        let body = QueueRequest.Body.data(Data("x".utf8))
        for request in [
            QueueRequest(method: "connect", url: url), QueueRequest(method: "GET", url: url, body: body),
        ] {
            #expect(throws: QueueError.self) { try RequestChecks.check(request) }
            try RequestChecks.check(request, for: .import)
        }
        #expect(throws: QueueError.self) {
            try RequestChecks.check(QueueRequest(method: "CONNECT", url: url), for: .import)
        }
    }

    @Test(arguments: ["Authorization", "cookie", "PROXY-Authorization"])
    func `a header with a secret is refused`(name: String) {
        #expect(code(headers: [.init(name: name, value: "x")]) == .secretHeader)
    }

    @Test(arguments: [
        ("X-A", "a\r\nb"), ("X-A", "a\nb"), ("X-A", "a\0b"), ("X-A", "a\u{1b}b"), ("X-A", "a\u{7f}"),
        ("", "a"), ("X A", "a"), ("X:", "a"),
    ])
    func `a header that would break the message framing is refused`(name: String, value: String) {
        #expect(code(headers: [.init(name: name, value: value)]) == .invalidHeader)
    }

    @Test func `a control character in a value is refused with the client's message, and a tab is accepted`()
    {
        let header = QueueRequest.Header(name: "X-A", value: "a\u{1}b")
        let request = QueueRequest(method: "GET", url: "https://example.com/", headers: [header])
        let refusal = #expect(throws: QueueError.self) {
            try NewRequest(request, options: EnqueueOptions())
        }
        let error = AFError.urlRequestValidationFailed(reason: .invalidHeader(name: "X-A", value: "a\u{1}b"))
        #expect(refusal.map { error.localizedDescription.hasSuffix($0.message) } == true)
        #expect(code(headers: [.init(name: "X-A", value: "a\tb")]) == nil)
    }

    @Test func `an invalid method and an invalid header name are refused with the client's messages`() {
        func message(_ request: QueueRequest) -> String? {
            #expect(throws: QueueError.self) { try NewRequest(request, options: EnqueueOptions()) }?.message
        }
        let url = "https://example.com/"
        let method = AFError.urlRequestValidationFailed(reason: .invalidMethod("GE T"))
        let refusal = message(QueueRequest(method: "GE T", url: url))
        #expect(refusal.map { method.localizedDescription.hasSuffix($0) } == true)
        let name = AFError.urlRequestValidationFailed(reason: .invalidHeader(name: "X A", value: "a"))
        let header = QueueRequest.Header(name: "X A", value: "a")
        let refusedName = message(QueueRequest(method: "GET", url: url, headers: [header]))
        #expect(refusedName.map { name.localizedDescription.hasSuffix($0) } == true)
    }

    private static let managed = [
        "Host", "connection", "UPGRADE", "TE", "Trailer", "Expect", "Keep-Alive", "Proxy-Connection",
        "proxy-x",
        "Transfer-Encoding", "Content-Length",
    ]

    @Test(arguments: managed)
    func `a header that the client sets is refused, even as the header of the key`(name: String) {
        func message(_ headers: [QueueRequest.Header], _ options: EnqueueOptions) -> String? {
            let request = QueueRequest(method: "POST", url: "http://a/", headers: headers)
            return #expect(throws: QueueError.self) { try NewRequest(request, options: options) }?.message
        }
        var keyed = EnqueueOptions()
        keyed.idempotencyKey.headerName = name
        let refusal = message([.init(name: name, value: "x")], EnqueueOptions())
        #expect(refusal?.hasPrefix("`\(name)` is refused: ") == true)
        #expect(message([], keyed) == refusal)
        #expect(code(options: keyed) == .invalidHeader)
    }

    @Test(arguments: ["Hostname", "Prox", "TEA", "Connections", "X-Host"])
    func `a header with a similar name is accepted`(name: String) {
        #expect(code(headers: [.init(name: name, value: "x")]) == nil)
    }

    @Test func `URLs and header fields are accepted up to their size limits`() {
        func url(_ bytes: Int) -> String { "http://a/" + String(repeating: "x", count: bytes - 9) }
        #expect(code(url: url(QueueRequest.maximumURLBytes)) == nil)
        #expect(code(url: url(QueueRequest.maximumURLBytes + 1)) == .invalidURL)
        func headers(_ bytes: Int) -> [QueueRequest.Header] {
            [
                .init(name: "X-A", value: "a"),
                .init(name: "X-B", value: String(repeating: "x", count: bytes - 7)),
            ]
        }
        #expect(code(headers: headers(QueueRequest.maximumHeadBytes)) == nil)
        #expect(code(headers: headers(QueueRequest.maximumHeadBytes + 1)) == .invalidHeader)
    }

    /// An export of an older version must be imported, even if it contains requests that are refused now.
    @Test func `requests that older versions accepted are imported`() throws {
        let long = "http://*/" + String(repeating: "x", count: 20_000)
        let headers = [QueueRequest.Header(name: "Connection", value: "close")]
        let request = QueueRequest(method: "TRACE", url: long, headers: headers)
        _ = try NewRequest(request, for: .import)
        for name in ["Authorization", "Content-Length"] {
            let request = QueueRequest(
                method: "GET",
                url: "http://a/",
                headers: [.init(name: name, value: "1")]
            )
            #expect(throws: QueueError.self) { try NewRequest(request, for: .import) }
        }
    }

    private func keyed(_ key: String) -> EnqueueOptions {
        var options = EnqueueOptions()
        options.idempotencyKey = .value(key)
        return options
    }

    @Test(arguments: ["", "a\tb", "ä", String(repeating: "x", count: 256)])
    func `an invalid key or id is refused`(text: String) {
        #expect(code(options: keyed(text)) == .invalidOption)
        #expect(code(headers: [.init(name: "Idempotency-Key", value: text)]) == .invalidOption)
        #expect(code(options: EnqueueOptions(id: text)) == .invalidOption)
    }

    @Test func `methods that are not idempotent get one generated key`() throws {
        func key(_ method: String, _ options: EnqueueOptions = .init(), _ headers: [QueueRequest.Header] = [])
            throws -> String?
        {
            let request = QueueRequest(method: method, url: "http://a/", headers: headers)
            return try NewRequest(request, options: options).key?.value
        }
        for method in ["POST", "PATCH", "LOCK", "get"] { #expect(try key(method)?.count == 36) }
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] { #expect(try key(method) == nil) }
        #expect(try key("POST", keyed("mine")) == "mine")
        #expect(try key("PUT", keyed("mine")) == "mine")
        #expect(try key("POST", .init(), [.init(name: "idempotency-key", value: "theirs")]) == "theirs")
        #expect(try key("POST") != key("POST"))
    }

    @Test func `ids are UUIDs of version 7 that sort by time`() throws {
        let ids = try (0..<50).map { _ in try new().id }
        #expect(Set(ids).count == 50)
        for id in ids {
            #expect(UUID(uuidString: id) != nil)
            #expect(id.dropFirst(14).first == "7")
            #expect("89ab".contains(id.dropFirst(19).first!))
        }
        #expect(ids.first!.prefix(11) <= ids.last!.prefix(11))
    }

    @Test func `a key header of the caller is sent although the queue adds no key`() throws {
        var options = EnqueueOptions()
        options.idempotencyKey = .none
        let request = QueueRequest(
            method: "POST",
            url: "http://example.com/",
            headers: [.init(name: "Idempotency-Key", value: "mine")]
        )
        let new = try NewRequest(request, options: options)
        #expect(HeaderText.decode(new.headers) + (new.key.map { [$0.header] } ?? []) == request.headers)
    }
}

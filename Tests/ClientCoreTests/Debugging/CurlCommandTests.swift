internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The text of curl commands.
struct CurlCommandTests {
    private let example = URLRequest("https://example.com/a?b=c")

    @Test func `a GET contains only its URL`() {
        #expect(CurlCommand(example).text() == "$ curl -v \\\n\t'https://example.com/a?b=c'")
    }

    /// With `-X HEAD`, curl would wait for a body that never arrives.
    @Test func `a HEAD uses the --head option`() {
        let command = CurlCommand(URLRequest("https://example.com/", "HEAD"))
        #expect(command.text() == "$ curl -v \\\n\t--head \\\n\t'https://example.com/'")
    }

    @Test func `each part of a request is on its own line`() {
        var command = CurlCommand(
            URLRequest(
                "https://example.com/a#fragment",
                "POST",
                ["x-two": "request", "Content-Type": "text/plain", "X-Empty": " "],
                body: Data("it's".utf8)
            )
        )
        command.sessionHeaders = ["X-Two": "session", "A": "1", "Accept-Encoding": "gzip;q=1.0"]
        command.credential = ("user", "pass word")
        command.cookies = "a=1; b=2"
        let expected = """
            $ curl -v \\
            	-X POST \\
            	-u 'user:pass word' \\
            	-b 'a=1; b=2' \\
            	-H 'A: 1' \\
            	-H 'Accept-Encoding: gzip;q=1.0' \\
            	-H 'Content-Type: text/plain' \\
            	-H 'X-Empty;' \\
            	-H 'x-two: request' \\
            	--compressed \\
            	--data-raw 'it'\\''s' \\
            	'https://example.com/a'
            """
        // URLRequest may change the case of header field names.
        #expect(command.text().lowercased() == expected.lowercased())
        #expect(command.text().contains("request'"))
    }

    @Test func `a body from a file or a stream is named, not included`() {
        let file = CurlCommand(example, body: .file(path: "/tmp/it's"))
        #expect(file.text().contains("\n\t--data-binary '@/tmp/it'\\''s' \\\n"))
        var streamed = URLRequest("https://example.com", "PUT")
        streamed.httpBodyStream = InputStream(data: Data())
        let text = CurlCommand(streamed).text()
        #expect(text.contains("--data-binary @- \\\n"))
        #expect(text.hasSuffix(" # the body (a stream) is read from standard input"))
    }

    @Test(arguments: [
        Data([0xff, 0xfe]), Data([0x61, 0]), Data([0x1b, 0x5b]), Data(repeating: 0x61, count: 131_072),
    ])
    func `a body that does not fit into an argument is read from standard input`(body: Data) {
        var request = URLRequest("https://example.com", "POST")
        request.httpBody = body
        let text = CurlCommand(request).text()
        #expect(text.contains("--data-binary @- \\\n"))
        #expect(text.contains(" # the body (\(body.count) bytes, "))
        #expect(!text.contains("aaa"))
    }

    @Test(arguments: ["", "/relative", "ftp://example.com", "file:///etc/passwd", "http:///path", "-o/tmp/x"])
    func `a request that cannot be sent has no command`(url: String) {
        var request = example
        request.url = URL(string: url)
        #expect(CurlCommand(request).text() == "$ curl command could not be created")
        #expect(CurlCommand(nil).text() == "$ curl command could not be created")
    }

    @Test(arguments: [
        ["@/etc/passwd": "1"], ["X": "1\r\nX-Evil: 1"], ["X": "a\0"], ["": "1"], ["a b": "1"],
    ])
    func `a field that cannot be sent prevents the command`(headers: HTTPHeaders) {
        var command = CurlCommand(example)
        command.sessionHeaders = headers
        #expect(command.text() == "$ curl command could not be created")
    }

    // MARK: Secrets

    @Test(arguments: [
        "Authorization", "proxy-authorization", "COOKIE", "Set-Cookie", "X-Api-Key", "X-Auth-Token",
        "X-Auth", "X-Session-Id",
    ])
    func `a secret field is redacted on request only`(name: String) {
        var command = CurlCommand(example)
        command.sessionHeaders = [name: "a=hidden"]
        #expect(command.text().contains("a=hidden'"))
        #expect(!command.text(redactingSecrets: true).contains("hidden"))
        #expect(command.text(redactingSecrets: true).contains("-H '\(name): REDACTED'"))
    }

    @Test func `other fields are not redacted`() {
        var command = CurlCommand(example)
        command.sessionHeaders = ["Accept": "shown", "Idempotency-Key": "shown"]
        #expect(command.text(redactingSecrets: true) == command.text())
    }

    @Test func `the password and stored cookies are redacted`() {
        var command = CurlCommand(example)
        command.credential = ("user", "hidden")
        command.cookies = "a=hidden"
        let text = command.text(redactingSecrets: true)
        #expect(text.contains("-u 'user:REDACTED'"))
        #expect(text.contains("-H 'Cookie: REDACTED'"))
        #expect(!text.contains("hidden"))
    }

    @Test(arguments: [
        ("https://user:hidden@example.com/", "https://REDACTED@example.com/"),
        ("https://hidden@example.com:8080", "https://REDACTED@example.com:8080"),
        ("https://example.com/@a?b=@c", "https://example.com/@a?b=@c"),
        ("https://h.example/?access_token=hidden&b=1", "https://h.example/?access_token=REDACTED&b=1"),
        ("https://h.example/?b=1;APIKEY=hidden=x", "https://h.example/?b=1;APIKEY=REDACTED"),
        ("https://h.example/?b=1;token=hid;den&c=2", "https://h.example/?b=1;token=REDACTED&c=2"),
        ("https://h.example/?%74oken=hidden", "https://h.example/?%74oken=REDACTED"),
        ("https://h.example/?token&a=1#token=hidden", "https://h.example/?token&a=1"),
        ("https://h.example/?X-Amz-Signature=hidden", "https://h.example/?X-Amz-Signature=REDACTED"),
    ])
    func `secrets in a URL are redacted`(url: String, expected: String) {
        let text = CurlCommand(URLRequest(url)).text(redactingSecrets: true)
        #expect(text == "$ curl -v \\\n\t'\(expected)'")
    }

    @Test(arguments: [
        ("https://h.example/#access_token=hidden&a=1", "https://h.example/#access_token=REDACTED&a=1"),
        ("https://h.example/#/path?sid=hidden", "https://h.example/#/path?sid=REDACTED"),
        (
            "https://h.example/?\u{301}a=1&\u{301}token=hidden",
            "https://h.example/?\u{301}a=1&\u{301}token=REDACTED"
        ),
        ("https://user:hidden@\u{301}h.example/", "https://REDACTED@\u{301}h.example/"),
    ])
    func `secrets in a fragment and after a combining character are redacted`(
        url: String,
        expected: String
    ) {
        #expect(CurlSecrets(isRedacting: true).url(url) == expected)
        #expect(CurlSecrets(isRedacting: false).url(url) == url)
    }

    @Test(arguments: [
        (
            "application/x-www-form-urlencoded; charset=utf-8", "a=1&user%5Bpassword%5D=hidden",
            "a=1&user%5Bpassword%5D=REDACTED"
        ),
        ("application/x-www-form-urlencoded", "a=1&\u{301}token=hidden", "a=1&\u{301}token=REDACTED"),
        (
            "application/json", #"{"a":[{"client_secret":{"b":"hidden"}}],"c":1}"#,
            #"{"a":[{"client_secret":"REDACTED"}],"c":1}"#
        ),
        ("application/problem+json", "\"text\"", "\"text\""),
        ("application/json", "no JSON, hidden", "REDACTED"),
        ("text/plain", "hidden", "REDACTED"),
        ("", "hidden", "REDACTED"),
    ])
    func `secrets in a body, and bodies that cannot be searched, are redacted`(
        type: String,
        body: String,
        expected: String
    ) {
        let command = CurlCommand(
            URLRequest("https://example.com", "POST", ["Content-Type": type], body: Data(body.utf8))
        )
        #expect(command.text().contains("--data-raw \(Shell.quoted(body)) "))
        #expect(command.text(redactingSecrets: true).contains("--data-raw \(Shell.quoted(expected)) \\\n"))
    }
}

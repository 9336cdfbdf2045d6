internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Requests that are rejected before anything is sent.
@Suite(.timeLimit(.minutes(5))) struct RequestBuildingTests {
    private func refusal(of request: URLRequest) -> AFError? {
        #expect(throws: AFError.self) { try request.validateForSending() }
    }

    private func reason(of request: URLRequest) throws -> AFError.URLRequestValidationFailureReason {
        guard case .urlRequestValidationFailed(let reason)? = refusal(of: request) else {
            throw CancellationError()
        }
        return reason
    }

    @Test(arguments: [
        "http://h", "https://u:p@h:65535/a%0d%0a?x=%00#f", "HTTP://h/", "http://[fe80::1%25eth0]:80/",
        "http://xn--bcher-kva.example/", "http://127.0.0.1:0/",
    ])
    func `an HTTP URL is accepted`(url: String) throws {
        try URLRequest(url).validateForSending()
        try URLRequest(url, "POST", ["Content-Length": "1"], body: Data([1]))
            .validateForSending()
    }

    @Test(arguments: ["http://a%0ab/", "http://a%00/", "http://a%20b/", "http://a%7f/", "http://h:99999/"])
    func `a URL with an invalid host or port is refused`(url: String) throws {
        let error = refusal(of: URLRequest(url))
        #expect(error?.isInvalidURLError == true)
        #expect((error?.urlConvertible as? URL)?.absoluteString == url)
    }

    @Test(arguments: [-3, -.infinity, .nan] as [TimeInterval])
    func `an invalid timeout is refused by name`(interval: TimeInterval) throws {
        var request = URLRequest("http://h/")
        request.timeoutInterval = interval
        guard case .invalidOption("timeoutInterval", let value, _) = try reason(of: request) else {
            Issue.record("not the timeout")
            return
        }
        #expect(value == "\(interval)")
    }

    @Test func `a request without a URL is refused`() throws {
        var request = URLRequest("http://h/")
        request.url = nil
        #expect(refusal(of: request)?.isInvalidURLError == true)
    }

    @Test(arguments: [
        "ftp://h/", "file:///etc/passwd", "gopher://h/", "data:,x", "h/p", "//h/p", "httpx://h",
    ])
    func `only http and https are accepted`(url: String) throws {
        guard case .unsupportedScheme(let refused) = try reason(of: URLRequest(url)) else {
            Issue.record("not the scheme")
            return
        }
        #expect(refused.absoluteString == url)
    }

    @Test(arguments: ["http://", "http:///p", "http:p", "http://:80/", "https://?q"])
    func `a URL without a host is refused`(url: String) throws {
        guard case .missingHost(let refused) = try reason(of: URLRequest(url)) else {
            Issue.record("not the host")
            return
        }
        #expect(refused.absoluteString == url)
    }

    @Test(arguments: ["", "PO ST", "GET\r\nX: 1", "GÊT", "G(T", "\0", "CONNECT", "connect", "ConNect"])
    func `an invalid method and CONNECT are refused`(method: String) throws {
        guard case .invalidMethod(let refused) = try reason(of: URLRequest("http://h/", method)) else {
            Issue.record("not the method")
            return
        }
        #expect(refused.uppercased() == method.uppercased())
    }

    @Test(arguments: ["QUERY", "PROPFIND", "M-SEARCH", "get"])
    func `any other method is accepted`(method: String) throws {
        try URLRequest("http://h/", method).validateForSending()
    }

    @Test(arguments: [
        ("", "v"), ("X Y", "v"), ("X:", "v"), ("X\r\nY", "v"), ("Ü", "v"), ("X", "1\r\nY: 2"), ("X", "1\n"),
        ("X", "\r"), ("X", "\0"), ("X", "\u{1}"), ("X", "\u{7f}"), ("X", "a\r\n b"),
        ("Transfer-Encoding", "chunked"), ("transfer-ENCODING", ""), ("content-length", "2"),
        ("Content-Length", ""), ("Content-Length", "01"), ("Content-Length", "1, 1"),
        ("Content-Length", "+1"), ("TE", "gzip, trailers"),
    ])
    func `a header field that would change the request's framing is refused`(name: String, value: String)
        throws
    {
        let request = URLRequest("http://h/", "POST", [name: value, "A": "1"], body: Data([1]))
        guard case .invalidHeader(name, value) = try reason(of: request) else {
            Issue.record("not the header")
            return
        }
    }

    @Test func `the error names the header field and the character, but not the value`() throws {
        let error = refusal(of: URLRequest("http://h/", "GET", ["X": "1\r\nY: 2"]))
        #expect(
            error?.localizedDescription
                == #"The request was not sent: the value of the header "X" has "\r" at byte 2; "#
                + "line breaks and control characters other than tab are not allowed"
        )
    }

    @Test func `tabs, spaces and letters of any script are accepted`() throws {
        try URLRequest("http://h/", "GET", ["X": "", "Y": "a\tb ü", "Content-Length": "0", "Host": "other"])
            .validateForSending()
    }

    @Test func `TE is accepted if it offers no transfer coding`() throws {
        try URLRequest("http://h/", "GET", ["TE": "trailers"]).validateForSending()
    }

    @Test(arguments: ["GET", "HEAD", "get"])
    func `a body with GET or HEAD is refused`(method: String) throws {
        for body in [Data(), Data([1, 2])] {
            let request = URLRequest("http://h/", method, body: body)
            guard case .bodyDataInGETRequest(body) = try reason(of: request) else {
                Issue.record("not the body")
                return
            }
        }
        var streamed = URLRequest("http://h/", method)
        streamed.httpBodyStream = InputStream(data: Data([1]))
        #expect(refusal(of: streamed)?.isURLRequestValidationError == true)
        let plain = URLRequest("http://h/", method)
        #expect(throws: AFError.self) { try plain.validateForSending(body: .upload(byteCount: 1)) }
    }

    @Test(
        arguments: [
            (1, "1", true), (1, "2", false), (0, "0", true), (nil, "7", true), (nil, "x", false),
            (nil, "-1", false),
            (nil, "", false), (nil, "99999999999999999999", false),
        ] as [(Int64?, String, Bool)]
    )
    func `the Content-Length of an upload must match its length`(count: Int64?, header: String, isSent: Bool)
        throws
    {
        let request = URLRequest("http://h/", "POST", ["Content-Length": header])
        if isSent {
            try request.validateForSending(body: .upload(byteCount: count))
        } else {
            #expect(throws: AFError.self) { try request.validateForSending(body: .upload(byteCount: count)) }
        }
    }

    @Test func `a Content-Length is accepted for a stream`() throws {
        var request = URLRequest("http://h/", "POST", ["Content-Length": "3"])
        request.httpBodyStream = InputStream(data: Data([1, 2, 3]))
        try request.validateForSending()
    }
}

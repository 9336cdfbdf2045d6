internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Invalid requests are rejected immediately: the server gets no connection.
@Suite(.timeLimit(.minutes(5))) struct RequestValidationTests {
    private let server: ScriptedServer
    private let engine: TransferEngine

    init() throws {
        server = try ScriptedServer()
        engine = try TransferEngine()
    }

    private func code(of request: TransferRequest) async -> Int32? {
        let failure = await engine.run(request).failure
        #expect(failure?.phase == .prepare)
        #expect(failure?.bytesSent == 0)
        #expect(server.connectionCount == 0)
        return failure?.code
    }

    @Test(arguments: ["", "PO ST", "GET\r\nX: 1", "GÊT", "CONNECT", "connect", "G(T"])
    func `CONNECT and a method that is not a token are rejected`(method: String) async {
        #expect(await code(of: TransferRequest(url: server.url, method: method)) == 43)
    }

    @Test(arguments: [
        ("", "v"), ("X Y", "v"), ("X:", "v"), ("X\r\nY", "v"), ("X", "1\r\nY: 2"), ("X", "1\nY: 2"),
        ("X", "\0"), ("X", "\u{1}"), ("X", "\u{7f}"),
        ("Transfer-Encoding", "chunked"), ("content-length", "7"), ("TE", "gzip"),
    ])
    func `a header that would change the request is rejected`(name: String, value: String) async {
        var request = TransferRequest(url: server.url)
        request.headers = [.init(name, value)]
        #expect(await code(of: request) == 43)
    }

    @Test(arguments: [
        ("", 3), ("http://", 3), ("http://a b/", 3), ("http://a\r\nb/", 3), ("http://bücher.example/", 3),
        ("http://127.0.0.1:99999/", 3), ("ftp://127.0.0.1/", 1), ("file:///etc/passwd", 1),
        ("gopher://x/", 1),
    ])
    func `a URL that is not http or https is rejected`(url: String, expected: Int32) async {
        #expect(await code(of: TransferRequest(url: url)) == expected)
    }

    @Test func `a HEAD request with a body is rejected`() async {
        var request = TransferRequest(url: server.url, method: "HEAD")
        request.body = [1]
        #expect(await code(of: request) == 43)
    }

    @Test(arguments: ["", String(repeating: "x", count: 108)])
    func `an invalid unix socket path is rejected`(path: String) async {
        var request = TransferRequest(url: server.url)
        request.unixSocketPath = path
        #expect(await code(of: request) == 43)
    }
}

internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// HTTP/2 servers that respond without reading the body of the request, and then reset the stream (RFC 9113 §8.1).
@Suite(.timeLimit(.minutes(5)), .enabled(if: TestAuthority.isAvailable, "needs openssl"))
struct EarlyResponseTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    /// A request with a body that is longer than the server's window, so that libcurl cannot send the whole body.
    private func upload(to server: HostileHTTP2Server) -> TransferRequest {
        var request = TransferRequest(url: server.url)
        (request.trust.anchors, request.trust.checksHost) = (nil, false)
        (request.method, request.body) = ("POST", .bytes(Array(repeating: 0x61, count: 300_000)))
        request.totalTimeout = .seconds(30)
        return request
    }

    @Test(arguments: [
        ("204", 204, ""), ("empty", 200, ""), ("sized", 200, "part"),
    ])
    func `a complete response is a success, and its connection is used again`(
        answer: String,
        status: Int,
        text: String
    ) async throws {
        let server = try HostileHTTP2Server("answered-\(answer)")
        let request = upload(to: server)
        for isReused in [false, true] {
            let record = await engine.run(request)
            #expect(record.hasSucceeded, "\(record.failure as Any)")
            #expect(record.head?.status == status && record.head?.version == "HTTP/2")
            #expect(record.text == text)
            #expect(record.metrics?.reusedConnection == isReused)
            #expect((record.metrics?.requestBodyBytes ?? .max) < 300_000)
        }
        withExtendedLifetime(server) {}
    }

    /// The server permits the rest of the body three seconds after its response.
    @Test func `the whole body is sent to a server that responds first and reads later`() async throws {
        let server = try HostileHTTP2Server("answered-early")
        let record = await engine.run(upload(to: server))
        #expect(record.hasSucceeded, "\(record.failure as Any)")
        #expect(record.head?.status == 204 && record.metrics?.requestBodyBytes == 300_000)
        withExtendedLifetime(server) {}
    }

    @Test(arguments: [
        ("truncated", "part"), ("unsized", "part"), ("protocol-error", ""), ("internal-error", ""),
    ])
    func `a response that may be incomplete, or is followed by an error, is a failure`(
        answer: String,
        text: String
    ) async throws {
        let server = try HostileHTTP2Server("answered-\(answer)")
        let record = await engine.run(upload(to: server))
        #expect(record.failure?.code == 92 && record.failure?.phase == .response, "\(record.failure as Any)")
        #expect(record.text == text)
        withExtendedLifetime(server) {}
    }
}

internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Response bodies with content encodings.
@Suite(.timeLimit(.minutes(5))) struct ContentCodingTests {
    private static let text = ContentDecoderTests.text
    private static let gzip = ContentDecoderTests.gzip

    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    private func server(_ coding: String = "gzip", _ body: [UInt8] = gzip) throws -> ScriptedServer {
        try ScriptedServer { _ in
            .respond(status: 200, headers: [.init("Content-Encoding", coding)], body: body)
        }
    }

    private func run(_ server: ScriptedServer, accepting: [String]) async -> TransferRecorder.Record {
        var request = TransferRequest(url: server.url)
        request.headers = accepting.map { .init("accept-encoding", $0) }
        return await engine.run(request)
    }

    @Test func `a requested coding is decoded, and Accept-Encoding is sent unchanged`() async throws {
        let server = try server()
        let record = await run(server, accepting: ["br;q=1.0, gzip;q=0.9"])
        #expect(record.text == Self.text)
        #expect(server.requests.first?.values(of: "Accept-Encoding") == ["br;q=1.0, gzip;q=0.9"])
        #expect(record.head?.headers.contains(.init("Content-Encoding", "gzip")) == true)
        #expect(record.metrics?.responseBodyBytes == Int64(Self.gzip.count))
        let total = Int64(Self.gzip.count)
        #expect(
            record.progress.last == TransferProgress(sent: 0, toSend: 0, received: total, toReceive: total)
        )
    }

    @Test func `several Accept-Encoding fields are combined`() async throws {
        let server = try server()
        #expect(await run(server, accepting: ["gzip", " ", "br"]).text == Self.text)
        #expect(server.requests.first?.values(of: "Accept-Encoding") == ["gzip, br"])
    }

    @Test(arguments: [[], [" "]])
    func `a coding that was not requested is not decoded`(accepting: [String]) async throws {
        let server = try server()
        #expect(await run(server, accepting: accepting).body == Self.gzip)
        #expect(server.requests.first?.values(of: "Accept-Encoding") == accepting.map { _ in "" })
    }

    @Test func `an unknown or wrong coding fails with code 61`() async throws {
        #expect(await run(try server("compress"), accepting: ["gzip"]).failure?.code == 61)
        #expect(await run(try server("deflate"), accepting: ["gzip"]).failure?.code == 61)
    }

    @Test(arguments: ContentDecoderTests.bodies)
    func `a truncated body is an error`(body: ContentDecoderTests.Body) async throws {
        let server = try server(body.coding, body.bytes.dropLast())
        let failure = await run(server, accepting: ["gzip"]).failure
        #expect(failure?.code == 18 && failure?.phase == .response)
        #expect(failure?.message == "the response body ended before its \(body.coding) data was complete")
    }

    @Test func `bytes after the end of a body are an error of its coding`() async throws {
        let record = await run(try server("gzip", Self.gzip + [1, 2, 3]), accepting: ["gzip"])
        #expect(record.failure?.code == 61)
        #expect(record.failure?.message == "the response body is not valid gzip data")
    }

    @Test func `a HEAD response and an empty body are complete in every coding`() async throws {
        for method in ["HEAD", "GET"] {
            let server = try server("gzip", [])
            var request = TransferRequest(url: server.url, method: method)
            request.headers = [.init("Accept-Encoding", "gzip")]
            #expect(await engine.run(request).hasSucceeded)
        }
    }

    @Test func `the body limit counts decoded bytes`() async throws {
        var request = TransferRequest(url: try server().url)
        request.headers = [.init("Accept-Encoding", "gzip")]
        request.maximumResponseBodyBytes = Self.text.utf8.count - 1
        let server = try server()
        request.url = server.url
        let record = await engine.run(request)
        #expect(record.failure?.code == 63)
        #expect(record.text == String(Self.text.dropLast()))
    }

    @Test func `responses that httpbin encodes are decoded`() async throws {
        let server = try HTTPBin()
        let paths = ["gzip": "gzip", "deflate": "deflate", "brotli": "br"]
        for (path, coding) in paths where TransferCapabilities.current.decodableEncodings.contains(coding) {
            var request = TransferRequest(url: "\(server.url)/\(path)")
            request.headers = [.init("Accept-Encoding", coding)]
            let record = await engine.run(request)
            #expect(record.text.contains("127.0.0.1"), "\(path)")
        }
        #expect(TransferCapabilities.current.decodableEncodings.contains("gzip"))
    }
}

internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Request bodies from a source.
@Suite(.timeLimit(.minutes(5))) struct BodySourceTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    private func request(_ server: ScriptedServer, _ source: any TransferBodySource) -> TransferRequest {
        TransferRequest(server, method: "PUT", body: .source(source))
    }

    private func text(_ text: String) -> SteppedSource.Piece { .bytes(Array(text.utf8)) }

    // MARK: Data on the wire

    @Test func `a body of known length adds Content-Length and no other header`() async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: 5, [text("ab"), text("cde"), .end])
        let record = await engine.run(request(server, source))
        #expect(record.hasSucceeded)
        let received = try #require(server.requests.first)
        #expect(received.body == Array("abcde".utf8))
        #expect(received.headers.map(\.name) == ["Host", "Accept", "Content-Length"])
        #expect(received.values(of: "Content-Length") == ["5"])
    }

    @Test func `a source of unknown length is sent in chunks`() async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: nil, [text("ab"), text("cde"), .end])
        #expect(await engine.run(request(server, source)).hasSucceeded)
        let received = try #require(server.requests.first)
        #expect(received.body == Array("abcde".utf8))
        #expect(received.headers.map(\.name) == ["Host", "Accept", "Transfer-Encoding"])
    }

    @Test(arguments: [nil, 0] as [Int64?])
    func `an empty source is an empty body`(length: Int64?) async throws {
        let server = try ScriptedServer()
        #expect(await engine.run(request(server, SteppedSource(length: length, [.end]))).hasSucceeded)
        #expect(server.requests.first?.body == [])
        #expect(server.requests.first?.values(of: "Content-Length") == (length == 0 ? ["0"] : []))
    }

    @Test func `an empty array is an empty body`() async throws {
        let server = try ScriptedServer()
        var request = TransferRequest(url: server.url, method: "DELETE")
        request.body = []
        #expect(await engine.run(request).hasSucceeded)
        #expect(server.requests.first?.values(of: "Content-Length") == ["0"])
    }

    @Test(arguments: [nil, 4] as [Int64?])
    func `the transfer waits for its source, whichever thread calls wake`(length: Int64?) async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: length)
        let recorder = TransferRecorder()
        engine.start(request(server, source)) { recorder.deliver($0) }
        for piece in [text("ab"), text("c"), text("d"), .end] {
            await engine.settle()
            #expect(server.requests.isEmpty)
            source.add(piece)
        }
        #expect(await recorder.end().hasSucceeded)
        #expect(server.requests.first?.body == Array("abcd".utf8))
    }

    @Test func `other transfers continue while a source has no bytes`() async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: 1)
        let recorder = TransferRecorder()
        engine.start(request(server, source)) { recorder.deliver($0) }
        for _ in 0..<10 { #expect(await engine.run(TransferRequest(url: server.url)).hasSucceeded) }
        source.add(text("a"), .end)
        #expect(await recorder.end().hasSucceeded)
    }

    // MARK: Sources with a wrong length

    @Test func `a source that ends early fails the transfer, and the request stays incomplete`()
        async throws
    {
        let server = try ScriptedServer()
        let source = SteppedSource(length: 5, [text("abcd"), .end])
        let failure = await engine.run(request(server, source)).failure
        #expect(failure?.code == 26)
        #expect(failure?.phase == .request)
        #expect(failure?.message == "the request body ended after 4 of 5 bytes")
        await server.openConnections(atMost: 0)
        #expect(server.requests.isEmpty)
    }

    @Test(arguments: [["abcdef"], ["abcde", "f"], ["abcd", "e", "f"]])
    func `a source that is too long fails the transfer, and the request stays incomplete`(
        pieces: [String]
    ) async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: 5, pieces.map(text))
        let failure = await engine.run(request(server, source)).failure
        #expect(failure?.code == 26)
        #expect(failure?.message == "the request body is longer than its announced 5 bytes")
        await server.openConnections(atMost: 0)
        #expect(server.requests.isEmpty)
    }

    @Test func `a source that returns excess bytes after a pause fails the transfer`() async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: 5, [text("abcde")])
        let recorder = TransferRecorder()
        engine.start(request(server, source)) { recorder.deliver($0) }
        await recorder.wait { $0.progress.last?.sent == 4 }
        source.add(text("f"))
        #expect(await recorder.end().failure?.code == 26)
        await server.openConnections(atMost: 0)
        #expect(server.requests.isEmpty)
    }

    @Test func `a source that cannot be read reports its error`() async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: nil, [text("a"), .failed(SystemError(call: "read", errno: EIO))])
        let failure = await engine.run(request(server, source)).failure
        #expect(failure?.code == 26)
        #expect(failure?.osErrno == EIO)
        #expect(failure?.message == "cannot read the request body: read: Input/output error")
    }

    @Test(arguments: [-1, .min] as [Int64])
    func `a negative length is rejected`(length: Int64) async throws {
        let server = try ScriptedServer()
        let failure = await engine.run(request(server, SteppedSource(length: length))).failure
        #expect(failure?.code == 43)
        #expect(failure?.message == "the body length \(length) is negative")
    }

    @Test func `Content-Length with a body of unknown length is rejected`() async throws {
        let server = try ScriptedServer()
        var request = request(server, SteppedSource(length: nil))
        request.headers = [.init("Content-Length", "0")]
        #expect(await engine.run(request).failure?.code == 43)
    }

    // MARK: Repeated requests

    @Test func `a source is rewound when libcurl sends its request again`() async throws {
        let server = try ScriptedServer.closingSecondRequest()
        _ = await engine.run(TransferRequest(url: server.url))
        let source = SteppedSource(length: 3, [text("abc"), .end])
        #expect(await engine.run(request(server, source)).hasSucceeded)
        #expect(server.requests.map(\.body) == [[], Array("abc".utf8), Array("abc".utf8)])
        #expect(source.rewinds > 0)
    }

    @Test func `bytes in memory are sent again from the beginning`() async throws {
        let server = try ScriptedServer.closingSecondRequest()
        _ = await engine.run(TransferRequest(url: server.url))
        var request = TransferRequest(url: server.url, method: "PUT")
        request.body = [1, 2, 3]
        #expect(await engine.run(request).hasSucceeded)
        #expect(server.requests.map(\.body) == [[], [1, 2, 3], [1, 2, 3]])
    }

    @Test func `a source that cannot rewind is not sent again`() async throws {
        let server = try ScriptedServer.closingSecondRequest()
        _ = await engine.run(TransferRequest(url: server.url))
        let source = SteppedSource(length: 3, [text("abc"), .end], isRewindable: false)
        let failure = await engine.run(request(server, source)).failure
        #expect(failure?.code == 65)
        #expect(server.requests.count == 2)
    }

    // MARK: The end

    @Test func `a source is cancelled exactly once, however its transfer ends`() async throws {
        let server = try ScriptedServer()
        let refused = try RefusingPort()
        for url in ["", refused.url, server.url] {
            let source = SteppedSource(length: 1, [text("a"), .end])
            var request = TransferRequest(url: url, method: "PUT")
            request.body = .source(source)
            _ = await engine.run(request)
            #expect(source.cancellations == 1)
        }
    }

    @Test func `a source may call wake after its transfer was cancelled`() async throws {
        let server = try ScriptedServer()
        let source = SteppedSource(length: 1)
        let recorder = TransferRecorder()
        let id = engine.start(request(server, source)) { recorder.deliver($0) }
        _ = await server.peers(atLeast: 1)
        engine.cancel(id)
        #expect(await recorder.end().failure?.code == 42)
        source.add(text("a"), .end)
        await engine.settle()
        #expect(recorder.record.ends.count == 1)
        #expect(source.cancellations == 1)
    }
}

internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The metrics and the progress that transfers report.
@Suite(.timeLimit(.minutes(5))) struct MetricsTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    /// Returns the time of each phase, in order; `nil` for a phase that was not reached.
    private func phases(_ metrics: TransferMetrics) -> [Duration?] {
        [
            metrics.lookupEnded, metrics.connected, metrics.tlsEnded, metrics.requestReady,
            metrics.requestSent, metrics.firstByte, metrics.ended,
        ]
    }

    @Test func `the metrics contain ordered times and the bytes on the wire`() async throws {
        let server = try ScriptedServer { _ in .respond("12345") }
        let engine = try TransferEngine(resolver: .answering("127.0.0.1"))
        var request = TransferRequest(url: "http://netwatch.invalid:\(server.port)/", method: "POST")
        request.body = [1, 2, 3]
        let before = BootInstant.now
        let metrics = try #require(await engine.run(request).metrics)
        #expect(metrics.startedAt >= before)
        #expect(phases(metrics).map { $0 != nil } == [true, true, false, true, true, true, true])
        let reached = [.zero] + phases(metrics).compactMap(\.self)
        #expect(reached == reached.sorted())
        #expect(metrics.startedAt + (try #require(metrics.ended)) <= .now)

        #expect(metrics.localAddress == "127.0.0.1")
        #expect(metrics.remoteAddress == "127.0.0.1")
        #expect(metrics.remotePort == Int(server.port))
        #expect(metrics.localPort != nil)
        #expect(metrics.httpVersion == "http/1.1")
        #expect(metrics.requestBodyBytes == 3)
        #expect(metrics.responseBodyBytes == 5)
        #expect(metrics.requestHeaderBytes > 30)
        #expect(
            metrics.responseHeaderBytes == "HTTP/1.1 200 Scripted\r\nContent-Length: 5\r\n\r\n".utf8.count
        )
        #expect(!metrics.reusedConnection)
        #expect(!metrics.usedTLS)
    }

    @Test func `no time is recorded for the end of the request after the response has begun`() {
        var times = TransferTimes(added: .zero)
        times.requestBegins(at: .seconds(1), handshakeEnded: nil)
        #expect(times.awaitsRequestEnd)
        times.responseBegins(at: .seconds(2))
        #expect(!times.awaitsRequestEnd)
    }

    @Test func `a reused connection has no connection times`() async throws {
        let server = try ScriptedServer()
        _ = await engine.run(TransferRequest(url: server.url))
        let metrics = try #require(await engine.run(TransferRequest(url: server.url)).metrics)
        #expect(metrics.reusedConnection)
        #expect(phases(metrics).map { $0 != nil } == [false, false, false, true, true, true, true])
        #expect(metrics.remotePort == Int(server.port))
    }

    @Test func `a request that is sent again has the times of its last attempt`() async throws {
        let server = try ScriptedServer { request in
            request.values(of: "Authorization").isEmpty
                ? .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic")]) : .respond("12345")
        }
        var request = TransferRequest(url: server.url)
        request.credentials = TransferCredentials(user: "a", password: "b")
        let metrics = try #require(await engine.run(request).metrics)
        let reached = phases(metrics).compactMap(\.self)
        #expect(reached == reached.sorted())
        #expect(metrics.connected != nil)
        #expect(metrics.responseBodyBytes == 5)
    }

    @Test func `a request that was sent again without a response has no first byte`() async throws {
        let server = try ScriptedServer { request in
            request.number == 1
                ? .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic")]) : .close
        }
        var request = TransferRequest(url: server.url)
        request.credentials = TransferCredentials(user: "a", password: "b")
        request.allowsConnectionReuse = false
        let metrics = try #require(await engine.run(request).metrics)
        #expect(metrics.requestReady != nil)
        #expect(metrics.firstByte == nil)
    }

    // MARK: Failures

    @Test func `a failed lookup has an end time`() async throws {
        let engine = try TransferEngine(resolver: NameResolver { _ in .failure(.init(code: -2)) })
        let record = await engine.run(TransferRequest(url: "http://netwatch.invalid/"))
        let metrics = try #require(record.metrics)
        #expect(record.failure?.phase == .resolve)
        #expect(phases(metrics).map { $0 != nil } == [true, false, false, false, false, false, true])
    }

    @Test func `a lookup that timed out or was cancelled has no end time`() async throws {
        let gate = LookupGate()
        defer { gate.open() }
        let engine = try TransferEngine(resolver: gate.resolver)
        var request = TransferRequest(url: "http://netwatch.invalid/")
        request.connectTimeout = .milliseconds(50)
        let metrics = try #require(await engine.run(request).metrics)
        #expect(phases(metrics).map { $0 != nil } == [false, false, false, false, false, false, true])
        #expect(try #require(metrics.ended) >= .milliseconds(50))
    }

    @Test func `a rejected request and a refused connection have only an end time`() async throws {
        let port = try RefusingPort()
        for url in ["", port.url] {
            let metrics = try #require(await engine.run(TransferRequest(url: url)).metrics)
            #expect(phases(metrics).map { $0 != nil } == [false, false, false, false, false, false, true])
            #expect(metrics.httpVersion == nil)
        }
    }

    @Test func `a body that ends early has a first byte`() async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", then: .close)
        }
        let metrics = try #require(await engine.run(TransferRequest(url: server.url)).metrics)
        #expect(metrics.firstByte != nil)
        #expect(metrics.responseBodyBytes == 3)
    }

    // MARK: Progress

    @Test func `progress reaches the sent and received bytes before the end`() async throws {
        let server = try ScriptedServer { .respond(status: 200, body: $0.body) }
        var request = TransferRequest(url: server.url, method: "PUT")
        let count = 3_000_000
        request.body = .bytes([UInt8](repeating: 0, count: count))
        let record = await engine.run(request)
        let total = Int64(count)
        #expect(record.progress.last == .init(sent: total, toSend: total, received: total, toReceive: total))
        #expect(record.progress.map(\.sent) == record.progress.map(\.sent).sorted())
        #expect(record.progress.map(\.received) == record.progress.map(\.received).sorted())
        #expect(Set(record.progress).count == record.progress.count)
        #expect(record.progress.count > 10)
    }

    @Test func `lengths that are not known are nil`() async throws {
        let server = try ScriptedServer { _ in .send("HTTP/1.0 200 OK\r\n\r\nabc", then: .close) }
        var request = TransferRequest(url: server.url, method: "PUT")
        request.body = .source(SteppedSource(length: nil, [.bytes([1]), .end]))
        let last = await engine.run(request).progress.last
        #expect(last?.toSend == nil)
        #expect(last?.toReceive == nil)
        #expect(last?.received == 3)
    }

    @Test func `a HEAD response has no length to receive`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 200, headers: [.init("Content-Length", "5")])
        }
        let record = await engine.run(TransferRequest(url: server.url, method: "HEAD"))
        #expect(record.progress.isEmpty)
    }
}

internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// The effect on other transfers when a server keeps libcurl in a busy loop.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: TestAuthority.isAvailable, "needs openssl"),
    .enabled(if: HostileCase.isMemoryMeasured, "floods take a sanitized process longer than they last")
)
struct BusyConnectionTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    private func start(_ request: TransferRequest) -> Recorder<TransferEvent> {
        let events = Recorder<TransferEvent>()
        engine.start(request) { events.record($0) }
        return events
    }

    private func hostileRequest(_ server: HostileHTTP2Server) -> TransferRequest {
        var request = TransferRequest(url: server.url)
        request.trust.anchors = nil
        request.trust.checksHost = false
        return request
    }

    @Test func `a transfer to another server succeeds on its existing connection`() async throws {
        let hostile = try HostileHTTP2Server("empty-data")
        let kind = try ScriptedServer { request in
            request.number == 1
                ? .send(
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
                    then: .stall(then: .send("ok", then: .close))
                ) : .respond("")
        }
        let survivor = start(TransferRequest(url: kind.url))
        try await survivor.wait { $0.contains { $0.head != nil } }
        let harmed = start(hostileRequest(hostile))
        try await harmed.wait { $0.last?.end != nil }
        #expect(harmed.values.last?.end?.failure?.code == 8)
        kind.release()
        try await survivor.wait { $0.last?.end != nil }
        #expect(survivor.values.last?.end?.failure == nil)
        #expect(kind.connectionCount == 1)
    }

    @Test
    func `all transfers on the connection fail with the same error, and the next one uses a new connection`()
        async throws
    {
        // The server behaves well on the first stream. On the second stream it sends frames without end.
        let hostile = try HostileHTTP2Server("second-empty-data")
        let first = start(hostileRequest(hostile))
        try await first.wait { $0.contains { $0.head != nil } }
        let second = start(hostileRequest(hostile))
        for events in [first, second] {
            try await events.wait { $0.last?.end != nil }
            #expect(events.values.last?.end?.failure?.code == 8)
        }
        let third = start(hostileRequest(hostile))
        try await third.wait { $0.contains { $0.head != nil } }
    }
}

extension TransferEvent {
    fileprivate var head: TransferHead? { if case .head(let head) = self { head } else { nil } }
    fileprivate var end: TransferEnd? { if case .end(let end) = self { end } else { nil } }
}

internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

/// A service that accepts requests and sends them to a server, while the path between them is lost and restored.
final class LinkFlapRun: Sendable {
    private let cuts: NetworkCuts
    private let server: ScriptedServer
    private let service: RunningService
    private let log: Log
    private let seed: UInt64

    /// The state that the server's threads, the producers' threads and the test share.
    private final class Log: Sendable {
        let ledger = Lock(FlapLedger())
        let changed = ChangeSignal()
        let isOver = Atomic(false)

        func answer(_ request: ScriptedServer.Request, _ seed: UInt64) -> ScriptedServer.Action {
            let number = ledger.withLock { ledger in
                ledger.arrive(
                    String(request.target.dropFirst()),
                    key: request.values(of: "Idempotency-Key").first
                )
                return ledger.arrivals
            }
            // Delays some responses, so that paths are lost between a request and its response. This blocks only the
            // thread of the connection.
            var generator = SeededGenerator(seed: seed &+ UInt64(number))
            if Int.random(in: 0..<4, using: &generator) == 0 {
                poll(nil, 0, CInt.random(in: 1...40, using: &generator))
            }
            changed.post()
            return .respond("")
        }
    }

    init(seed: UInt64) async throws {
        let log = Log()
        (self.log, self.seed) = (log, seed)
        cuts = try NetworkCuts()
        // Otherwise the kernel would hold packets back for up to a second after each loss of the carrier.
        try cuts.testbed.knowNeighbour()
        server = try ScriptedServer(address: TwoCableTestbed.host, in: cuts.far) { log.answer($0, seed) }
        service = try await RunningService(in: try ScratchDirectory(), namespace: cuts.near)
    }

    var ledger: FlapLedger { log.ledger.withLock { $0 } }

    // MARK: Flaps

    /// Loses and restores the path, in a random way and for a random time up to 300 ms, followed by a random pause up
    /// to 300 ms. Requests are enqueued in all lanes meanwhile.
    func flap(times count: Int) async throws {
        try await withThrowingTaskGroup { group in
            for lane in FlapLane.all { group.addTask { try await self.produce(lane) } }
            group.addTask {
                defer { self.log.isOver.store(true, ordering: .releasing) }
                var generator = SeededGenerator(seed: self.seed)
                for _ in 0..<count { try await self.flap(&generator) }
            }
            try await group.waitForAll()
        }
    }

    private func flap(_ generator: inout SeededGenerator) async throws {
        let kind = NetworkCuts.Kind.allCases.filter { $0 != .roaming }.randomElement(using: &generator)!
        try cuts.cut(kind)
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &generator)))
        try cuts.restore(kind)
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &generator)))
    }

    // MARK: Requests

    /// Enqueues requests in a lane, one after the other with random pauses, until the last flap.
    private func produce(_ lane: FlapLane) async throws {
        try await offPool { [self] in
            let client = try RawClient(service.socket)
            let place = UInt64(lane.number) << 1 | (lane.isFIFO ? 1 : 0)
            var generator = SeededGenerator(seed: ~seed &+ place)
            var number = 0
            while !log.isOver.load(ordering: .acquiring) {
                try enqueue(.init(lane: lane, number: number), by: client)
                usleep(UInt32.random(in: 0...60_000, using: &generator))
                number += 1
            }
        }
    }

    private func enqueue(_ item: FlapLedger.Item, by client: RawClient) throws {
        let url = "http://\(TwoCableTestbed.host):\(server.port)/\(item.id)"
        let body = """
            {"id":"\(item.id)","url":"\(url)","method":"POST","body":"\(item.number)","queue":"always",\
            "lane":"\(item.lane.name)","fifo":\(item.lane.isFIFO)}
            """
        let answer = try client.enqueue(body)
        try #require((200..<300).contains(answer.status), "\(item.id): \(answer)")
        log.ledger.withLock { $0.accept(item) }
    }

    // MARK: The end

    /// Waits until every accepted request has arrived and the queue has recorded it as delivered.
    func drain() async throws {
        try await log.changed.until { ledger.isComplete }
        try await service.until { try await unfinished() == 0 }
    }

    private func unfinished() async throws -> Int {
        let counts = try await counts()
        return ["pending", "inflight", "blocked"].reduce(0) { $0 + counts[$1, default: 0] }
    }

    /// The number of requests in each state.
    func counts() async throws -> [String: Int] { try await service.counts() }
}

internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Connections and queues that end between the upload of a request and its response.
@Suite(.serialized, .timeLimit(.minutes(30))) struct AtMostOnceTests {
    /// The number of cuts in each round. After a round the queue starts again.
    private static let cutsPerRound = 100
    private static let rounds = CheckSize.choose(small: 2, medium: 5, full: 100)

    @Test func `an at-most-once request never arrives twice, wherever its attempt is cut`() async throws {
        let run = try CutRun(seed: CrashScale.seed, isAtMostOnce: true)
        for _ in 0..<Self.rounds { try await run.round(Self.cutsPerRound) }
        let (arrivals, cuts) = (run.arrivals, Self.rounds * Self.cutsPerRound)
        let duplicates = arrivals.filter { $0.value > 1 }
        print(
            "cuts between upload and response: \(cuts), duplicates \(duplicates.count), seed \(CrashScale.seed)"
        )
        #expect(arrivals.count == cuts && duplicates.isEmpty, "replay with NETWATCH_SEED=\(CrashScale.seed)")
    }

    @Test func `the check notices requests that are sent again after a cut`() async throws {
        let run = try CutRun(seed: CrashScale.seed, isAtMostOnce: false)
        try await run.round(50)
        #expect(run.arrivals.values.contains { $0 > 1 })
    }
}

/// Rounds in which each request is cut once, at a place that depends on the seed.
private final class CutRun: Sendable {
    /// Where the exchange is cut after the server has read the whole request.
    private enum Cut: CaseIterable {
        case reset, close, interim, partOfStatusLine, partOfHead, headWithoutBody, stopOfQueue
    }

    private let directory = TemporaryDirectory(marker: "cut")
    private let changes = ChangeSignal()
    private let isAtMostOnce: Bool
    private let counts: ArrivalCounts
    private let arrived: ChangeSignal
    private let server: ScriptedServer
    private let next = Lock(0)

    /// The number of arrivals of each request.
    var arrivals: [String: Int] { counts.all }

    init(seed: UInt64, isAtMostOnce: Bool) throws {
        let (counts, arrived) = (ArrivalCounts(), ChangeSignal())
        (self.isAtMostOnce, self.counts, self.arrived) = (isAtMostOnce, counts, arrived)
        server = try ScriptedServer { request in
            defer { arrived.post() }
            let visit = counts.next(request.target)
            var generator = SeededGenerator(seed: seed &+ UInt64(request.target.dropFirst())!)
            let cut = Cut.allCases.randomElement(using: &generator)!
            // A request that is repeated is accepted, so that every round ends.
            return visit > 1 ? .respond("") : Self.action(cut, &generator)
        }
    }

    private static func action(_ cut: Cut, _ generator: inout SeededGenerator) -> ScriptedServer.Action {
        let end: ScriptedServer.Action = Bool.random(using: &generator) ? .reset : .close
        switch cut {
        case .reset: return .reset
        case .close: return .close
        case .interim: return .send("HTTP/1.1 100 Continue\r\n\r\n", then: end)
        case .partOfStatusLine: return .send("HTTP/1.1 2", then: end)
        case .partOfHead: return .send("HTTP/1.1 200 OK\r\nContent-Le", then: end)
        case .headWithoutBody: return .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", then: end)
        case .stopOfQueue: return .stall(then: .close)
        }
    }

    /// Sends requests until each has arrived, stops the queue, and starts it again with a new path.
    func round(_ count: Int) async throws {
        let first = next.withLock { next in
            defer { next += count }
            return next
        }
        var queue = try await open(FakeGate())
        for number in first..<first + count {
            var options = EnqueueOptions(lane: "\(number)", id: "\(number)")
            options.isAtMostOnce = isAtMostOnce
            let request = QueueRequest(
                method: "POST",
                url: "\(server.url)/\(number)",
                body: .data(Data(repeating: 120, count: number % 7 * 1000))
            )
            _ = try await queue.enqueue(request, options: options)
        }
        try await arrived.until { counts.all.count == first + count }
        await queue.stop()
        let gate = FakeGate()
        queue = try await open(gate)
        try await queue.flush()
        gate.turn(.reachable(generation: 2))
        try await changes.until(queue) { $0[.pending] + $0[.inflight] == 0 }
        await queue.stop()
    }

    private func open(_ gate: FakeGate) async throws -> OfflineQueue {
        try await directory.openQueue(SessionSender(session: .bare()), gate: gate, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(1), .milliseconds(10))
            // Stalled attempts must not keep the slots that others need.
            ($0.inflight, $0.inflightPerOrigin) = (1024, 1024)
            $0.stopTimeout = .zero
        }
    }
}

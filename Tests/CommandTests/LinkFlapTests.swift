internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// A path that is lost and restored many times in a row, while the built service accepts and sends requests in FIFO and
/// parallel lanes. ``CheckSize`` selects 10, 50 or 1,000 losses; `NETWATCH_SEED` selects the random choices.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(30))
)
struct LinkFlapTests {
    private static let flaps = CheckSize.choose(small: 10, medium: 50, full: 1000)
    private static let seed =
        ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
        ?? .random(in: 0...UInt64.max)

    @Test
    func `however often the path is lost, every request is applied once, and FIFO lanes keep their order`()
        async throws
    {
        let run = try await LinkFlapRun(seed: Self.seed)
        try await run.flap(times: Self.flaps)
        try await run.drain()
        let (ledger, counts) = (run.ledger, try await run.counts())
        print(
            """
            link flaps: \(Self.flaps) flaps, \(ledger.acceptedCount) accepted, \
            \(ledger.acceptedCount - ledger.appliedCount) lost, \(ledger.appliedCount) applied, \
            \(ledger.duplicates) duplicates with the same key, seed \(Self.seed)
            """
        )
        #expect(ledger.violations.prefix(10) == [], "replay with NETWATCH_SEED=\(Self.seed)")
        #expect(ledger.acceptedCount >= FlapLane.all.count)
        #expect(counts["dead", default: 0] == 0 && counts["held", default: 0] == 0, "\(counts)")
    }
}

/// The checks of ``LinkFlapTests`` detect every broken promise.
struct FlapLedgerTests {
    private static let first = FlapLedger.Item(lane: .init(isFIFO: true, number: 2), number: 0)
    private static let second = FlapLedger.Item(lane: .init(isFIFO: true, number: 2), number: 1)

    private func ledger(_ arrivals: [(FlapLedger.Item, String?)]) -> FlapLedger {
        var ledger = FlapLedger()
        for item in [Self.first, Self.second] { ledger.accept(item) }
        for (item, key) in arrivals { ledger.arrive(item.id, key: key) }
        return ledger
    }

    @Test func `a duplicate with the same key is counted and is not a violation, even late`() {
        let ledger = ledger([(Self.first, "a"), (Self.second, "b"), (Self.first, "a")])
        #expect(ledger.violations == [] && ledger.duplicates == 1 && ledger.isComplete)
        #expect(ledger.appliedCount == 2 && ledger.acceptedCount == 2)
    }

    @Test func `a lost request is a violation`() {
        let ledger = ledger([(Self.first, "a")])
        #expect(ledger.violations == ["fifo-2-1 was accepted and never arrived"] && !ledger.isComplete)
    }

    @Test func `a FIFO lane that loses its order is a violation`() {
        let ledger = ledger([(Self.second, "b"), (Self.first, "a")])
        #expect(ledger.violations == ["the lane fifo-2 was applied in the order [1, 0]"])
    }

    @Test func `a duplicate with another key, or without a key, is a violation`() {
        let keyed = ledger([(Self.first, "a"), (Self.second, "b"), (Self.second, "c")])
        #expect(keyed.violations.contains("fifo-2-1 arrived with 2 keys"))
        let keyless = ledger([(Self.first, "a"), (Self.second, "b"), (Self.second, nil)])
        #expect(keyless.violations == ["fifo-2-1 arrived without a key of its own"])
        let shared = ledger([(Self.first, "a"), (Self.second, "a"), (Self.second, "b")])
        #expect(shared.violations.contains("fifo-2-1 arrived without a key of its own"))
    }

    @Test func `a request that was never accepted is a violation`() {
        var ledger = ledger([(Self.first, "a"), (Self.second, "b")])
        ledger.arrive("parallel-0-0", key: "c")
        #expect(ledger.violations == ["parallel-0-0 was never accepted"])
    }
}

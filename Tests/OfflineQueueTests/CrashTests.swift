internal import Foundation
internal import QueueVictim
internal import Testing

/// How much of the randomised checks is run, and from which seed.
enum CrashScale {
    static let isSoak = ProcessInfo.processInfo.environment["NETWATCH_SOAK"] != nil

    /// `NETWATCH_SEED` replays one.
    static let seed: UInt64 =
        ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
        ?? UInt64.random(in: 0 ... .max)
}

@Suite(.serialized) struct CrashTests {
    @Test func `no kill loses, reorders, doubles or holds up what was accepted`() async throws {
        let seed = CrashScale.seed
        let ledger = try await CrashSeries(seed: seed, kills: 50).run()
        print("SIGKILL: \(ledger.summary), seed \(seed)")
        #expect(ledger.violations == [], "replay with NETWATCH_SEED=\(seed)")
    }

    @Test func `the check notices a queue that accepts before it has written`() async throws {
        var series = CrashSeries(seed: CrashScale.seed, kills: 4)
        series.breakage = .reportsEarly
        series.drains = false
        let ledger = try await series.run()
        #expect(ledger.lost > 0)
    }

    @Test func `the check notices lanes that do not keep order`() async throws {
        var series = CrashSeries(seed: CrashScale.seed, kills: 4)
        series.breakage = .forgetsOrder
        let violations = try await series.run().violations
        #expect(violations.contains { if case .overtook = $0 { true } else { false } })
    }
}

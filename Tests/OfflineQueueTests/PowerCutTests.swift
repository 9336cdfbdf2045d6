internal import QueueVictim
internal import Testing

/// Kills of processes whose disk forgets what was not synced. The spool of large bodies has checks of its own.
@Suite(.serialized) struct PowerCutTests {
    @Test func `no power cut loses, reorders, doubles or holds up what was accepted`() async throws {
        let seed = CrashScale.seed
        var series = CrashSeries(seed: seed, kills: CrashScale.isSoak ? 200 : 20)
        series.cutsPower = true
        let ledger = try await series.run()
        print("power cut: \(ledger.summary), seed \(seed)")
        #expect(ledger.violations == [], "replay with NETWATCH_SEED=\(seed)")
    }
}

internal import QueueVictim
internal import Testing

/// Kills of processes whose disk forgets what was not synced. The spool of large bodies has checks of its own.
@Suite(.serialized) struct PowerCutTests {
    @Test func `no power cut loses, reorders, doubles or holds up what was accepted`() async throws {
        let seed = CrashScale.seed
        var series = CrashSeries(seed: seed, kills: CrashScale.isSoak ? 200 : 20)
        series.cutsPower = true
        let figures = try await series.runInParts(of: 10)
        print("power cut: \(figures), seed \(seed)")
        #expect(figures.violations == [], "replay with NETWATCH_SEED=\(seed)")
    }

    /// The positive control: a check that cannot see this loss says nothing about any other.
    @Test func `what is only written at durability normal is lost in every power cut`() async throws {
        let seed = CrashScale.seed
        var series = CrashSeries(seed: seed, kills: CrashScale.isSoak ? 200 : 20)
        series.cutsPower = true
        series.leaksAtMost = 0
        series.isDurable = false
        series.sends = false
        series.checkpointPages = [0]
        series.hasCrashes = false
        series.drains = false
        let figures = try await series.runInParts(of: 10)
        let cuts = figures.killsAfterAcceptance
        print("power cut at durability normal: \(figures.lossyKills) of \(cuts) cuts lost, seed \(seed)")
        #expect(cuts > 0 && figures.lossyKills == cuts, "replay with NETWATCH_SEED=\(seed)")
    }

    @Test func `the check notices a disk that only says that it has written`() async throws {
        var series = CrashSeries(seed: CrashScale.seed, kills: 4)
        series.cutsPower = true
        series.breakage = .syncsNothing
        series.drains = false
        #expect(try await series.run().figures.lost > 0)
    }
}

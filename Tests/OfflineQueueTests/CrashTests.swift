internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import QueueVictim
internal import Testing

@Suite(.serialized) struct CrashTests {
    @Test func `no kill loses, reorders, doubles or holds up what was accepted`() async throws {
        let seed = CrashScale.seed
        let series = CrashSeries(seed: seed, kills: CheckSize.choose(small: 10, medium: 100, full: 1000))
        let figures = try await series.runInParts(of: 50)
        print("SIGKILL: \(figures), seed \(seed)")
        #expect(figures.violations.prefix(20) == [], "replay with NETWATCH_SEED=\(seed)")
        // With few kills, some crash points may not be reached.
        guard CheckSize.current != .small else { return }
        #expect(figures.places.values.allSatisfy { $0.reached > 0 }, "\(figures.places)")
    }

    @Test func `processes kill themselves at every crash point that the queue has`() {
        let points = CrashPoint.allCases.map(\.rawValue)
        #expect(points.filter { VictimOrders.Crash.Place(rawValue: $0) == nil } == [])
    }

    @Test func `the check notices a queue that accepts before it has written`() async throws {
        var series = CrashSeries(seed: CrashScale.seed, kills: 4)
        series.breakage = .reportsEarly
        series.drains = false
        let figures = try await series.run().figures
        #expect(figures.lost > 0)
    }

    @Test func `the check notices lanes that do not keep order`() async throws {
        var series = CrashSeries(seed: CrashScale.seed, kills: 1)
        series.breakage = .forgetsOrder
        series.hasCrashes = false
        series.earliestKill = .seconds(1)
        series.latestKill = .seconds(2)
        let violations = try await series.run().violations
        #expect(violations.contains { if case .overtook = $0 { true } else { false } })
    }
}

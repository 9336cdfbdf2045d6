internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import QueueTestProcess
internal import Testing

@Suite(.serialized) struct CrashTests {
    @Test func `no kill loses, reorders, duplicates or delays an accepted request`() async throws {
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
        #expect(points.filter { TestProcessOptions.Crash.Place(rawValue: $0) == nil } == [])
    }

    @Test func `the check detects a queue that reports a request as accepted before its commit`() async throws
    {
        var series = CrashSeries(seed: CrashScale.seed, kills: 1)
        series.fault = .reportsEarly
        series.sends = false
        series.drains = false
        // The first commits open the store and release each producer's lane. Those after them hold requests, which are
        // already reported. There are at least four, because each producer enqueues one request after another.
        series.crash = TestProcessOptions.Crash(.beforeCommit, passage: series.producers + 4)
        let figures = try await series.run().figures
        #expect(figures.lost > 0)
    }

    @Test func `the check detects FIFO lanes that do not keep order`() async throws {
        // On a busy machine, a process may be killed before it has sent two requests of a lane.
        var hasOvertaken = false
        for delay in [1, 2, 4, 8] where !hasOvertaken {
            var series = CrashSeries(seed: CrashScale.seed, kills: 1)
            series.fault = .forgetsOrder
            series.hasCrashes = false
            series.earliestKill = .seconds(delay)
            series.latestKill = .seconds(2 * delay)
            let violations = try await series.run().violations
            hasOvertaken = violations.contains { if case .overtook = $0 { true } else { false } }
        }
        #expect(hasOvertaken)
    }
}

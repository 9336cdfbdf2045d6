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
        // With the few kills of a small check, some crash points may not be reached.
        guard CheckSize.current != .small else { return }
        #expect(figures.places.values.allSatisfy { $0.reached > 0 }, "\(figures.places)")
    }

    @Test func `no kill loses or changes a webhook`() async throws {
        var series = CrashSeries(
            seed: CrashScale.seed,
            kills: CheckSize.choose(small: 6, medium: 60, full: 600)
        )
        series.hasWebhooks = true
        let ledger = try await series.run()
        #expect(ledger.violations.prefix(20) == [], "replay with NETWATCH_SEED=\(series.seed)")
        #expect(!ledger.delivered.isEmpty)
        #expect(ledger.delivered.subtracting(ledger.reports.keys) == [], "these ends were not reported")
        // The server received each webhook at least once, always with the same key and body.
        let changed = ledger.reports.filter { $1.count != 1 || $1.first?.first?.isEmpty == true }
        #expect(changed.isEmpty, "\(changed)")
        for (id, report) in ledger.reports {
            #expect(report.first?.last?.contains(#""id":"\#(id)""#) == true)
        }
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
        // The first commits open the store and release the lane of each producer. The commits after them store
        // requests, which this faulty queue has already reported as accepted. There are at least four, because each
        // producer enqueues its requests one by one.
        series.crash = TestProcessOptions.Crash(.beforeCommit, passage: series.producers + 4)
        // Longer than a process takes to reach its crash point, even on a busy machine.
        series.timeLimit = .seconds(60)
        let figures = try await series.run().figures
        #expect(figures.lost > 0)
    }

    @Test func `the check detects FIFO lanes that do not keep order`() async throws {
        // The series is repeated, because on a busy machine all processes may be killed before they have sent two
        // requests of a lane.
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

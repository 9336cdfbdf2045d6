internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import QueueTestProcess
internal import Testing

/// Power cuts: kills of processes whose disk loses all unsynced data. `SpoolPowerCutTests` tests the spool.
@Suite(.serialized) struct PowerCutTests {
    @Test func `no power cut loses, reorders, duplicates or delays an accepted request`() async throws {
        let seed = CrashScale.seed
        var series = CrashSeries(seed: seed, kills: CheckSize.choose(small: 4, medium: 20, full: 200))
        series.cutsPower = true
        let figures = try await series.runInParts(of: 20)
        print("power cut: \(figures), seed \(seed)")
        #expect(figures.violations.prefix(20) == [], "replay with NETWATCH_SEED=\(seed)")
    }

    /// Shows that the check detects a loss. Without this test, the other ones would prove nothing.
    @Test func `requests of durability normal that were not synced are lost in a power cut`() async throws {
        let seed = CrashScale.seed
        var (cuts, lossyCuts) = (0, 0)
        // The series is repeated, because on a busy machine all processes may be killed before they accept a request.
        for round in 0..<5 where cuts == 0 {
            let kills = CheckSize.choose(small: 4, medium: 20, full: 200)
            var series = CrashSeries(seed: seed &+ UInt64(round), kills: kills)
            series.cutsPower = true
            series.leaksAtMost = 0
            series.isDurable = false
            series.sends = false
            series.checkpointPages = [0]
            series.hasCrashes = false
            series.drains = false
            let figures = try await series.runInParts(of: 10)
            (cuts, lossyCuts) = (figures.killsAfterAcceptance, figures.lossyKills)
        }
        print("power cut at durability normal: \(lossyCuts) of \(cuts) cuts lost, seed \(seed)")
        #expect(cuts > 0 && lossyCuts == cuts, "replay with NETWATCH_SEED=\(seed)")
    }

    @Test func `the check detects a disk that does not sync`() async throws {
        var lost = 0
        // The series is repeated, because on a busy machine all processes may be killed before they accept a request.
        for round in 0..<5 where lost == 0 {
            var series = CrashSeries(seed: CrashScale.seed &+ UInt64(round), kills: 12)
            series.cutsPower = true
            series.fault = .syncsNothing
            series.drains = false
            lost = try await series.run().figures.lost
        }
        #expect(lost > 0)
    }

    /// A caller that received no receipt enqueues the same id again. Although the row already exists, it may not be
    /// synced yet.
    @Test(arguments: [Durability.full, .normal])
    func `a known id is as durable as its receipt states`(durability: Durability) async throws {
        let scratch = try ScratchDirectory(in: "/dev/shm")
        let directory = try PowerCutDisk.directory(in: scratch)
        let store = try await SQLiteQueueStore(directory: directory)
        _ = try await store.enqueue([try request("a", .normal)])
        let again = try await store.enqueue([try request("a", durability)])[0]
        #expect(again.outcome == .known)
        PowerCutDisk.cutPower(in: directory)
        await store.close()
        let reopened = try await SQLiteQueueStore(directory: directory)
        let isThere = try await reopened.details(of: "a") != nil
        #expect(isThere == (again.durability == .full))
        await reopened.close()
    }

    @Test func `the body of a dropped request is removed only after the commit`() async throws {
        let scratch = try ScratchDirectory(in: "/dev/shm")
        let directory = try PowerCutDisk.directory(in: scratch)
        let store = try await SQLiteQueueStore(directory: directory)
        let body = try await store.spool.store(Data(repeating: 0x61, count: 70_000))
        _ = try await store.enqueue([try request("old", .full, replaceKey: "k", body: .spooled(body))])
        let new = try await store.enqueue([try request("new", .normal, replaceKey: "k")])[0]
        #expect(new.outcome == .accepted)
        PowerCutDisk.cutPower(in: directory)
        await store.close()
        let reopened = try await SQLiteQueueStore(directory: directory)
        let old = try #require(try await reopened.details(of: "old")).summary.state
        let fault = await reopened.spool.verify(body)
        #expect(old.isFinal || fault == nil, "\(old), and its body is \(fault.map { "\($0)" } ?? "intact")")
        await reopened.close()
    }

    private func request(
        _ id: String,
        _ durability: Durability,
        replaceKey: String? = nil,
        body: StoredBody = .none
    ) throws -> NewRequest {
        var options = EnqueueOptions(id: id)
        options.durability = durability
        options.replaceKey = replaceKey
        let request = QueueRequest(method: "POST", url: "http://example.com/")
        return try NewRequest(request, options: options, body: body)
    }
}

internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite struct HostHistoryTests {
    private let directory: ScratchDirectory
    private typealias Start = HostTracker.Start
    private let history: HostHistory
    /// 2026-11-24 00:00:00 UTC, in milliseconds since 1970.
    static let midnight: Int64 = 1_795_478_400_000

    init() throws {
        directory = try ScratchDirectory()
        history = try HostHistory(path: directory.file("history.sqlite"))
    }

    static func span(_ state: HostState, _ start: Int64, _ end: Int64) -> HostTracker.Span {
        var tracker = HostTracker(fall: 1, rise: 1, now: .at(midnight + start * 1000))
        let report: HostReport =
            switch state {
            case .up: .success(latency: nil)
            case .down(.local): .noPath("no carrier")
            case .down(.remote): .failure("timeout")
            case .unknown: .path
            }
        _ = tracker.take(report, at: .at(midnight + start * 1000))
        let end = HostTracker.Moment.at(midnight + end * 1000)
        return tracker.account(until: end)[0]
    }

    @Test func `time is divided among minutes, hours and days`() async throws {
        var batch = HistoryBatch()
        batch.add(Self.span(.up, 3590, 3605), of: "api")
        batch.add(Self.span(.down(.remote), 3605, 3610), of: "api")
        try await history.write(batch, now: .at(Self.midnight))
        let minutes = try await history.buckets(of: "api", .minute, since: 0)
        let start = Self.midnight / 1000
        #expect(minutes.mapValues(\.up) == [start + 3540: 10_000, start + 3600: 5000])
        #expect(minutes[start + 3600]?.remote == 5000)
        let days = try await history.buckets(of: "api", .day, since: 0)
        #expect(days.mapValues(\.up) == [start: 15_000])
        #expect(days[start]?.uptime == 0.75)
    }

    @Test func `a later batch adds to the buckets, and a reopened history has them all`() async throws {
        for latency in [10, 20, 400] {
            var batch = HistoryBatch()
            batch.addProbe(
                of: "api",
                at: Self.midnight,
                latency: .milliseconds(latency),
                isSuccess: latency < 400
            )
            try await history.write(batch, now: .at(Self.midnight))
        }
        try history.close()
        let again = try HostHistory(path: directory.file("history.sqlite"))
        let hours = try await again.buckets(of: "api", .hour, since: 0)
        let bucket = try #require(hours[Self.midnight / 1000])
        #expect(bucket.probes == 3 && bucket.failures == 1)
        let median = try #require(bucket.latencies.quantile(0.5))
        #expect(median >= .milliseconds(10) && median <= .milliseconds(12))
        let slowest = try #require(bucket.latencies.quantile(1))
        #expect(slowest >= .milliseconds(20) && slowest <= .milliseconds(23))
    }

    @Test func `a batch that is too large drops its oldest minutes, then hours`() {
        var batch = HistoryBatch()
        batch.add(Self.span(.up, 0, 7200), of: "api")
        func starts(_ tier: HistoryTier) -> [Int64] {
            batch.buckets.keys.filter { $0.tier == tier }.map { $0.start - Self.midnight / 1000 }.sorted()
        }
        #expect(batch.buckets.count == 123)
        batch.shrink(to: 5)
        #expect(starts(.minute) == [7080, 7140])
        #expect(starts(.hour) == [0, 3600] && starts(.day) == [0])
        batch.shrink(to: 2)
        #expect(starts(.minute).isEmpty && starts(.hour) == [3600] && starts(.day) == [0])
    }

    private func beginOutage() async throws {
        var tracker = HostTracker(fall: 1, rise: 1, now: .at(Self.midnight))
        let down = tracker.take(.failure("timeout"), at: .at(Self.midnight))
        var batch = HistoryBatch()
        batch.add(try #require(down.change), of: "api")
        try await history.write(batch, now: .at(Self.midnight + 60_000))
    }

    @Test func `a restart within five minutes continues an outage`() async throws {
        try await beginOutage()
        let open = try await history.resume(now: .at(Self.midnight + 60_000 + 299_000))
        #expect(open == ["api": HostTracker.Outage(cause: .remote, since: .at(Self.midnight))])
    }

    @Test func `after a longer pause, an outage ended when the history was last written`() async throws {
        try await beginOutage()
        #expect(try await history.resume(now: .at(Self.midnight + 60_000 + 301_000)) == [:])
        let outages = try await history.outages(of: "api", since: 0, now: .at(Self.midnight), limit: 10)
        #expect(outages.map(\.end) == [Self.midnight + 60_000])
        #expect(outages.map(\.reason) == ["timeout"])
    }

    // MARK: Steps of the wall clock

    private static let twoWeeks: Int64 = 14 * 86_400_000

    /// Returns the times of the only outage in seconds since midnight.
    private static func times(
        in history: HostHistory,
        at now: HostTracker.Moment = .at(midnight)
    ) async throws -> [Int64?] {
        let outages = try await history.outages(of: "api", since: 0, now: now, limit: 10)
        let outage = try #require(outages.first)
        return [outage.start, outage.end].map { $0.map { ($0 - midnight) / 1000 } }
    }

    /// Returns another owner of the file, as after a restart.
    private func reopened(bootID: String?) throws -> HostHistory {
        try history.close()
        return try HostHistory(path: directory.file("history.sqlite"), bootID: bootID)
    }

    @Test(arguments: [twoWeeks, -twoWeeks])
    func `an outage in which the clock is set has its length, by the clock as it is set last`(
        step: Int64
    ) async throws {
        try await beginOutage()
        let minute = HostTracker.Moment.at(Self.midnight + 120_000, step: step)
        #expect(try await Self.times(in: history, at: minute) == [step / 1000, nil])
        try await history.write(HistoryBatch(), now: minute)
        #expect(try await Self.times(in: history, at: minute) == [step / 1000, nil])
        var batch = HistoryBatch()
        let end = HostTracker.Moment.at(Self.midnight + 180_000, step: step)
        batch.endOutage(of: "api", at: Start(end))
        try await history.write(batch, now: end)
        #expect(try await Self.times(in: history) == [step / 1000, step / 1000 + 180])
    }

    @Test(arguments: [twoWeeks, -twoWeeks])
    func `an outage that was not written before the clock was set has its length`(step: Int64) async throws {
        let end = Self.midnight + 1000
        try await history.write(
            Self.batch(.failure("timeout"), .success(latency: nil)),
            now: .at(end + 60_000, step: step)
        )
        #expect(try await Self.times(in: history) == [step / 1000, step / 1000 + 1])
    }

    @Test(arguments: [twoWeeks, -twoWeeks])
    func `after a restart in the same boot, the boot clock measures the pause and the outage`(
        step: Int64
    ) async throws {
        let first = try reopened(bootID: "a")
        try await first.write(Self.batch(.failure("timeout")), now: .at(Self.midnight + 60_000))
        try first.close()
        let second = try HostHistory(path: directory.file("history.sqlite"), bootID: "a")
        let soon = HostTracker.Moment.at(Self.midnight + 359_000, step: step)
        let open = try #require(try await second.resume(now: soon)["api"])
        #expect(soon.wall - open.since.wall(at: soon) == 359_000)
        let hooked = try #require(try await second.hookOutages()["api"]?[.remote])
        #expect(hooked.id == Self.midnight && soon.wall - hooked.wall(at: soon) == 359_000)
        let late = HostTracker.Moment.at(Self.midnight + 361_000, step: step)
        #expect(try await second.resume(now: late) == [:])
        #expect(try await Self.times(in: second) == [step / 1000, step / 1000 + 60])
        try second.close()
    }

    @Test(arguments: ["b", nil])
    func `after a reboot, the times of the last write are used`(bootID: String?) async throws {
        let first = try reopened(bootID: bootID == nil ? nil : "a")
        try await first.write(Self.batch(.failure("timeout")), now: .at(Self.midnight))
        let set = HostTracker.Moment.at(Self.midnight + 60_000, step: Self.twoWeeks)
        try await first.write(HistoryBatch(), now: set)
        try first.close()
        let second = try HostHistory(path: directory.file("history.sqlite"), bootID: bootID)
        // The boot clock has started again, and its time says nothing about the outage.
        let soon = HostTracker.Moment(wall: set.wall + 299_000, running: .seconds(20))
        let open = try #require(try await second.resume(now: soon)["api"])
        #expect(open.since == Start(id: set.wall - 60_000, recorded: set.wall - 60_000, boot: nil))
        let hooked = try #require(try await second.hookOutages()["api"]?[.remote])
        #expect(hooked == Start(id: Self.midnight, recorded: set.wall - 60_000, boot: nil))
        // The clock of the new boot is two weeks behind. The time without a service is not known.
        let behind = HostTracker.Moment(wall: Self.midnight, running: .seconds(20))
        #expect(open.since.wall(at: behind) == behind.wall)
        #expect(try await second.resume(now: behind) == [:])
        #expect(try await Self.times(in: second) == [Self.twoWeeks / 1000, Self.twoWeeks / 1000 + 60])
        try second.close()
    }

    // MARK: Outages for hooks

    /// Returns the changes of a host with the given reports, one per second from midnight on.
    static func batch(_ reports: HostReport..., of host: String = "api") -> HistoryBatch {
        func moment(_ seconds: Int) -> HostTracker.Moment {
            .at(midnight + Int64(seconds) * 1000)
        }
        var tracker = HostTracker(fall: 1, rise: 1, now: moment(0))
        var batch = HistoryBatch()
        for (second, report) in reports.enumerated() {
            if let change = tracker.take(report, at: moment(second)).change { batch.add(change, of: host) }
        }
        return batch
    }

    @Test func `for hooks, an outage lasts until the host is up`() async throws {
        let reports = Self.batch(.noPath("no carrier"), .path, .failure("timeout"), .noPath("again"), .path)
        try await history.write(reports, now: .at(Self.midnight + 10_000))
        let starts: [OutageCause: Start] = [.local: .at(Self.midnight), .remote: .at(Self.midnight + 2000)]
        let outages = ["api": starts]
        #expect(try await history.hookOutages() == outages)
        // No outage is open in the history, and a pause does not matter.
        #expect(try await history.resume(now: .at(Self.midnight + 3_600_000)) == [:])
        #expect(try await history.hookOutages() == outages)
        let up = Self.batch(.success(latency: nil))
        try await history.write(up, now: .at(Self.midnight + 10_000))
        #expect(try await history.hookOutages() == [:])
    }

    @Test func `what hooks have reported is kept for the hooks and the hosts of the configuration`()
        async throws
    {
        let outage = HostTracker.Outage(cause: .local, since: .at(Self.midnight))
        let message = HostHistory.HookMessageRecord(id: "1", hook: "a", body: Data("{}".utf8))
        func record(_ hook: String, _ hosts: [String], _ outage: HostTracker.Outage?) async throws {
            let report = HostHistory.HookReport(
                hook: hook,
                outages: hosts.map { (host: $0, outage: outage) },
                messages: hook == "a" && outage != nil ? [message] : []
            )
            try await history.record(report, now: .at(Self.midnight))
        }
        for hook in ["a", "b"] { try await record(hook, ["api", "db"], outage) }
        let both = ["api": outage, "db": outage]
        #expect(try await history.hookReports() == ["a": both, "b": both])
        try await history.keepHooks(["a"])
        var batch = HistoryBatch()
        batch.addWatched(["db"])
        // The clock was set by two weeks, and the times with it.
        let now = HostTracker.Moment.at(Self.midnight + 1000, step: Self.twoWeeks)
        try await history.write(batch, now: now)
        let kept = try await history.hookReports()
        let start = Start(
            id: Self.midnight,
            recorded: Self.midnight + Self.twoWeeks,
            boot: outage.since.boot
        )
        #expect(kept == ["a": ["db": HostTracker.Outage(cause: .local, since: start)]])
        #expect(try await history.hookMessages() == [message])
        try history.close()
        let next = try HostHistory(path: directory.file("history.sqlite"), bootID: "another boot")
        #expect(try await next.hookReports()["a"]?["db"]?.since.boot == .some(nil))
        try await next.record(
            HostHistory.HookReport(hook: "a", outages: [(host: "db", outage: nil)], messages: []),
            now: now
        )
        try await next.removeHookMessage("1")
        let left = (try await next.hookReports(), try await next.hookMessages())
        #expect(left.0 == [:] && left.1 == [])
    }

    @Test func `a batch that is too large drops only outages that it contains completely`() async throws {
        try await beginOutage()
        var batch = HistoryBatch()
        batch.endOutage(of: "api", at: .at(Self.midnight + 1000))
        for _ in 0..<3 { batch.add(Self.batch(.failure("timeout"), .success(latency: nil))) }
        batch.add(Self.batch(.noPath("no carrier")))
        batch.shrink(to: 3)
        #expect(batch.outages.count == 3)
        try await history.write(batch, now: .at(Self.midnight + 10_000))
        let outages = try await history.outages(of: "api", since: 0, now: .at(Self.midnight), limit: 10)
        #expect(outages.count == 2, "\(outages)")
        #expect(Set(outages.map(\.cause)) == [.remote, .local])
        #expect(outages.first { $0.cause == .remote }?.end == Self.midnight + 1000)
        #expect(outages.first { $0.cause == .local }?.end == nil)
        #expect(try await history.hookOutages() == ["api": [.local: .at(Self.midnight)]])
    }

    @Test func `outages of hosts that are not watched any more are forgotten`() async throws {
        for host in ["api", "db"] {
            try await history.write(Self.batch(.failure("timeout"), of: host), now: .at(Self.midnight))
        }
        var batch = HistoryBatch()
        batch.addWatched(["db"])
        try await history.write(batch, now: .at(Self.midnight))
        #expect(try await history.hookOutages() == ["db": [.remote: .at(Self.midnight)]])
    }

    /// From the first release on, a migration must not lose what an older version has stored.
    @Test func `a migration keeps the outages of an older version`() async throws {
        try await beginOutage()
        try history.close()
        let database = try DatabaseQueue(path: directory.file("history.sqlite"))
        var migrator = HistorySchema.migrator
        migrator.registerMigration("v2") { try $0.execute(sql: "ALTER TABLE outage ADD COLUMN later TEXT") }
        try migrator.migrate(database)
        let kept = try await database.read { try String.fetchAll($0, sql: "SELECT reason FROM outage") }
        #expect(kept == ["timeout"])
    }

    /// The migrations of development versions are named by numbers only.
    @Test(arguments: ["v99", "5"])
    func `the history of a newer or a development version is refused`(
        migration: String
    ) throws {
        try history.close()
        let path = directory.file("history.sqlite")
        let database = try DatabaseQueue(path: path)
        try database.write {
            try $0.execute(sql: "INSERT INTO grdb_migrations VALUES (?)", arguments: [migration])
        }
        try database.close()
        let fault = try #require(throws: HistoryFault.self) { try HostHistory(path: path) }
        #expect(
            fault.description
                == "`\(path)` cannot be used: a newer or a development version of netwatch has written it; to start a "
                + "new history, stop the service and remove the file"
        )
    }

    @Test func `a file that is not a database is refused`() throws {
        try directory.write(Array("not a database, but longer than a header of SQLite".utf8), to: "other")
        let path = directory.file("other")
        let fault = try #require(throws: HistoryFault.self) { try HostHistory(path: path) }
        #expect(
            fault.description
                == "`\(path)` cannot be used: file is not a database; to start a new history, stop the "
                + "service and remove the file"
        )
    }

    @Test func `a failed write is reported with the path, and not as an unusable file`() async throws {
        try history.close()
        let fault = try await #require(throws: HistoryFault.self) {
            try await history.write(HistoryBatch(), now: .at(Self.midnight))
        }
        let path = directory.file("history.sqlite")
        #expect(fault.description.hasPrefix("`\(path)`: "), "\(fault)")
    }
}

internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

/// When the rows of a history are removed.
@Suite struct HistoryRetentionTests {
    private let directory: ScratchDirectory
    private static let midnight = HostHistoryTests.midnight
    /// A day in milliseconds.
    private static let day: Int64 = 86_400_000

    init() throws { directory = try ScratchDirectory() }

    /// Opens the history, as after a start of the service.
    private func open(
        retention: Duration = HostHistory.defaultRetention,
        bootID: String? = "a",
        isSynchronized: Bool? = nil
    ) throws -> HostHistory {
        try HostHistory(
            path: directory.file("history.sqlite"),
            retention: retention,
            bootID: bootID,
            isSynchronized: { isSynchronized }
        )
    }

    /// An outage of a second, and a minute in which the host is up.
    private static var minute: HistoryBatch {
        var batch = HostHistoryTests.batch(.failure("timeout"), .success(latency: nil))
        batch.add(HostHistoryTests.span(.up, 0, 60), of: "api")
        return batch
    }

    /// Returns the numbers of the buckets of each tier, and of the outages.
    private static func counts(in history: HostHistory) async throws -> [Int] {
        var counts: [Int] = []
        for tier in HistoryTier.allCases {
            counts.append(try await history.buckets(of: "api", tier, since: 0).count)
        }
        return counts + [try await history.outages(of: nil, since: 0, now: .at(midnight), limit: 10).count]
    }

    @Test func `each tier and the outages are removed after their own time`() async throws {
        let history = try open()
        try await history.write(Self.minute, now: .at(Self.midnight))
        let expected = [1: [1, 1, 1, 1], 2: [0, 1, 1, 1], 32: [0, 0, 1, 1], 367: [0, 0, 0, 0]]
        for (days, kept) in expected.sorted(by: { $0.key < $1.key }) {
            try await history.removeOld(now: .at(Self.midnight + Int64(days) * Self.day))
            #expect(try await Self.counts(in: history) == kept, "after \(days) days")
        }
    }

    @Test func `days and outages are kept for the configured time`() async throws {
        let history = try open(retention: .seconds(40 * 86_400))
        try await history.write(Self.minute, now: .at(Self.midnight))
        for (days, kept) in [(39, 1), (42, 0)] {
            try await history.removeOld(now: .at(Self.midnight + Int64(days) * Self.day))
            #expect(try await Self.counts(in: history) == [0, 0, kept, kept], "after \(days) days")
        }
    }

    @Test func `a new retention applies to the next removal`() async throws {
        let history = try open()
        try await history.write(Self.minute, now: .at(Self.midnight))
        let later = HostTracker.Moment.at(Self.midnight + 42 * Self.day)
        try await history.removeOld(now: later)
        #expect(try await Self.counts(in: history) == [0, 0, 1, 1])
        history.use(retention: .seconds(40 * 86_400))
        try await history.removeOld(now: later)
        #expect(try await Self.counts(in: history) == [0, 0, 0, 0])
    }

    @Test func `an outage that lasts is kept, and its age begins with its end`() async throws {
        let history = try open()
        let start = HostTracker.Moment.at(Self.midnight)
        try await history.write(HostHistoryTests.batch(.failure("timeout")), now: start)
        let end = HostTracker.Moment.at(Self.midnight + 400 * Self.day)
        try await history.removeOld(now: end)
        #expect(try await Self.counts(in: history) == [0, 0, 0, 1])
        var batch = HistoryBatch()
        batch.endOutage(of: "api", at: HostTracker.Start(end))
        try await history.write(batch, now: end)
        for (days, kept) in [(764, 1), (766, 0)] {
            try await history.removeOld(now: .at(Self.midnight + Int64(days) * Self.day))
            #expect(try await Self.counts(in: history) == [0, 0, 0, kept], "after \(days) days")
        }
    }

    // MARK: Steps of the wall clock

    @Test(arguments: [400 * day, -400 * day])
    func `a step of the wall clock removes nothing, and time that has passed removes everything`(
        step: Int64
    ) async throws {
        let history = try open(isSynchronized: true)
        try await history.write(Self.minute, now: .at(Self.midnight + 60_000))
        try await history.removeOld(now: .at(Self.midnight + 120_000, step: step))
        #expect(try await Self.counts(in: history) == [1, 1, 1, 1])
        try await history.removeOld(now: .at(Self.midnight + 367 * Self.day, step: step))
        #expect(try await Self.counts(in: history) == [0, 0, 0, 0])
    }

    @Test(arguments: [400 * day, -400 * day])
    func `a restart in the same boot does not change the age of a row`(step: Int64) async throws {
        let first = try open()
        try await first.write(Self.minute, now: .at(Self.midnight + 60_000))
        try first.close()
        let second = try open(isSynchronized: true)
        try await second.removeOld(now: .at(Self.midnight + Self.day, step: step))
        #expect(try await Self.counts(in: second) == [1, 1, 1, 1])
        try await second.removeOld(now: .at(Self.midnight + 2 * Self.day, step: step))
        #expect(try await Self.counts(in: second) == [0, 1, 1, 1])
    }

    @Test(arguments: [true, false, nil])
    func `after a reboot, the wall clock removes old rows only if it is synchronized`(
        isSynchronized: Bool?
    ) async throws {
        let first = try open()
        try await first.write(Self.minute, now: .at(Self.midnight + 60_000))
        try first.close()
        let second = try open(bootID: "b", isSynchronized: isSynchronized)
        let late = HostTracker.Moment(wall: Self.midnight + 40 * Self.day, running: .seconds(20))
        try await second.write(HistoryBatch(), now: late)
        try await second.removeOld(now: late)
        #expect(try await Self.counts(in: second) == (isSynchronized == true ? [0, 0, 1, 1] : [1, 1, 1, 1]))
        // By the wall clock the rows are in the future. But two days have passed.
        let early = HostTracker.Moment(wall: 0, running: .seconds(2 * 86_400))
        try await second.removeOld(now: early)
        #expect(try await Self.counts(in: second) == (isSynchronized == true ? [0, 0, 1, 1] : [0, 1, 1, 1]))
    }

    @Test func `a restart without the id of the boot makes no row older`() async throws {
        let first = try open(bootID: nil)
        try await first.write(Self.minute, now: .at(Self.midnight + 60_000))
        try first.close()
        let second = try open(bootID: nil)
        // The machine has run for longer than each retention, but perhaps already when the rows were written.
        let soon = HostTracker.Moment.at(Self.midnight + 120_000)
        try await second.write(HistoryBatch(), now: soon)
        try await second.removeOld(now: soon)
        #expect(try await Self.counts(in: second) == [1, 1, 1, 1])
    }

    @Test func `the uptime does not count buckets of a clock that was ahead`() async throws {
        let history = try open()
        var batch = HistoryBatch()
        batch.add(HostHistoryTests.span(.up, 0, 60), of: "api")
        batch.add(HostHistoryTests.span(.down(.remote), 40 * 86_400, 40 * 86_400 + 60), of: "api")
        try await history.write(batch, now: .at(Self.midnight + 60_000))
        let start = Self.midnight / 1000
        let sums = try await history.sums(.hour, in: start - 86_400...start + 60)
        #expect(sums.mapValues(\.up) == ["api": 60_000])
        #expect(sums.mapValues(\.remote) == ["api": 0])
    }
}

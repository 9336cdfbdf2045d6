internal import NetwatchService
internal import Testing

@Suite struct HostTrackerTests {
    private typealias Moment = HostTracker.Moment
    private static let start: Int64 = 1_000_000_000_000

    private var tracker = HostTracker(fall: 3, rise: 2, now: Self.moment(0))
    private var changes: [HostTracker.Change] = []
    private var spans: [HostTracker.Span] = []

    /// A moment some seconds after the start.
    private static func moment(_ seconds: Int64, wallStep: Int64 = 0) -> Moment {
        Moment(wall: start + (seconds + wallStep) * 1000, running: .seconds(seconds))
    }

    private mutating func take(_ report: HostReport, at seconds: Int64, wallStep: Int64 = 0) {
        let result = tracker.take(report, at: Self.moment(seconds, wallStep: wallStep))
        if let change = result.change { changes.append(change) }
        spans += result.spans
    }

    private mutating func account(until seconds: Int64, wallStep: Int64 = 0) {
        spans += tracker.account(until: Self.moment(seconds, wallStep: wallStep))
    }

    private func seconds(in state: HostState) -> Int64 {
        spans.filter { $0.state == state }.reduce(0) { $0 + ($1.end - $1.start) } / 1000
    }

    @Test mutating func `the first successful probe makes a host up`() {
        take(.path, at: 1)
        #expect(tracker.state == .unknown)
        take(.success(latency: .milliseconds(5)), at: 2)
        #expect(tracker.state == .up)
        #expect(tracker.latency == .milliseconds(5))
        #expect(changes.map(\.new) == [.up])
    }

    @Test mutating func `a host is down after three failed probes, from the first of them on`() {
        take(.success(latency: nil), at: 0)
        take(.failure("timeout"), at: 30)
        take(.failure("timeout"), at: 31)
        #expect(tracker.state == .up && tracker.isDegraded)
        take(.failure("refused"), at: 33)
        #expect(tracker.state == .down(.remote))
        #expect(changes.last?.since.recorded == Self.start + 30_000)
        #expect(changes.last?.reason == "refused")
        account(until: 60)
        #expect(seconds(in: .up) == 30)
        #expect(seconds(in: .down(.remote)) == 30)
    }

    @Test mutating func `a success between failures starts the count again`() {
        take(.success(latency: nil), at: 0)
        for time in [10, 20, 40, 50] as [Int64] { take(.failure("timeout"), at: time) }
        #expect(tracker.state == .down(.remote))
        take(.success(latency: nil), at: 60)
        take(.failure("timeout"), at: 70)
        take(.success(latency: nil), at: 80)
        #expect(tracker.state == .down(.remote))
        take(.success(latency: nil), at: 81)
        #expect(tracker.state == .up)
        #expect(changes.last?.since.recorded == Self.start + 80_000)
        account(until: 100)
        #expect(seconds(in: .up) == 10 + 20)
        #expect(seconds(in: .down(.remote)) == 70)
    }

    @Test mutating func `two failures and a recovery are up time`() {
        take(.success(latency: nil), at: 0)
        take(.failure("timeout"), at: 10)
        take(.failure("timeout"), at: 20)
        account(until: 25)
        #expect(seconds(in: .up) == 10)
        take(.success(latency: nil), at: 30)
        #expect(seconds(in: .up) == 30)
        #expect(changes.count == 1)
        #expect(!tracker.isDegraded && tracker.reason == nil)
    }

    @Test mutating func `a lost path is a local outage at once, and not the fault of the host`() {
        take(.success(latency: nil), at: 0)
        take(.noPath("no carrier"), at: 10)
        #expect(tracker.state == .down(.local))
        #expect(tracker.reason == "no carrier")
        take(.path, at: 20)
        #expect(tracker.state == .unknown)
        take(.success(latency: nil), at: 21)
        #expect(tracker.state == .up)
        #expect(seconds(in: .down(.local)) == 10)
        #expect(seconds(in: .down(.remote)) == 0)
        #expect(seconds(in: .unknown) == 1)
    }

    @Test mutating func `a captive portal is a local outage`() {
        take(.success(latency: nil), at: 0)
        take(.captive("captive"), at: 10)
        #expect(tracker.state == .down(.local))
        take(.success(latency: nil), at: 15)
        #expect(tracker.state == .up)
    }

    @Test mutating func `a host that stays unreachable behind a restored path becomes a remote outage`() {
        take(.noPath("no route"), at: 0)
        take(.path, at: 10)
        for time in [11, 12, 14] as [Int64] { take(.failure("refused"), at: time) }
        #expect(changes.map(\.new) == [.down(.local), .unknown, .down(.remote)])
    }

    @Test mutating func `a step of the wall clock neither adds nor removes time`() {
        take(.success(latency: nil), at: 0)
        account(until: 10)
        account(until: 20, wallStep: 3600)
        account(until: 30, wallStep: -3600)
        #expect(seconds(in: .up) == 30)
        #expect(spans.last?.end == Self.start + (30 - 3600) * 1000)
    }

    @Test(arguments: [14 * 86_400, -14 * 86_400] as [Int64])
    mutating func `a step of the wall clock does not change the length of an outage`(step: Int64) {
        for time in [10, 11, 13] as [Int64] { take(.failure("timeout"), at: time) }
        for time in [70, 71] as [Int64] { take(.success(latency: nil), at: time, wallStep: step) }
        let up = changes[1]
        #expect(up.oldSince?.wall(at: up.time) == Self.start + (10 + step) * 1000)
        #expect(up.since.wall(at: up.time) == Self.start + (70 + step) * 1000)
        // The time of the webhook's id does not change.
        #expect(up.oldSince?.id == Self.start + 10_000)
    }

    @Test func `a small correction of the wall clock does not change the start of a state`() {
        let start = HostTracker.Start(Self.moment(10))
        func milliseconds(_ correction: Int64) -> Int64 {
            let later = Self.moment(20)
            let corrected = Moment(wall: later.wall + correction, running: later.running)
            return start.wall(at: corrected) - start.recorded
        }
        #expect([-1999, 0, 1999].map(milliseconds) == [0, 0, 0])
        #expect([-2000, 2000].map(milliseconds) == [-2000, 2000])
    }

    @Test func `a state does not begin after now`() {
        let beforeBoot = HostTracker.Start(id: 5000, recorded: 5000, boot: nil)
        #expect([4000, 5000, 6000].map { beforeBoot.wall(at: .at($0)) } == [4000, 5000, 5000])
        let short = HostTracker.Start(Self.moment(10))
        let setBack = Moment(wall: Self.start + 9500, running: .milliseconds(10_500))
        #expect(short.wall(at: setBack) == setBack.wall)
    }

    @Test mutating func `an outage from before a restart goes on until the host responds`() {
        let outage = HostTracker.Outage(
            cause: .remote,
            since: HostTracker.Start(id: 42, recorded: 42, boot: nil)
        )
        tracker = HostTracker(
            fall: 3,
            rise: 2,
            continuing: outage,
            now: Self.moment(0)
        )
        take(.path, at: 0)
        take(.failure("refused"), at: 1)
        #expect(changes == [])
        #expect(tracker.outage == outage)
        take(.success(latency: nil), at: 2)
        take(.success(latency: nil), at: 3)
        #expect(changes.map(\.oldSince) == [outage.since])
    }
}

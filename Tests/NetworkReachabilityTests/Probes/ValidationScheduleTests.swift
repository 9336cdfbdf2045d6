internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct ValidationScheduleTests {
    private typealias Schedule = ValidationSchedule<BootInstant>

    private let start = BootInstant.now
    private let good = ProbeResult(.valid, latency: .milliseconds(5))
    private let bad = ProbeResult(.failed("no answer"))

    private func at(_ seconds: Double) -> BootInstant { start + .seconds(seconds) }

    private func reachable(_ generation: UInt64 = 1, to destination: String = "198.51.100.7") -> PathStatus {
        PathStatus(
            target: .general,
            verdict: TargetVerdict(.reachable(.to(destination))),
            pathGeneration: generation
        )
    }

    private func gone(_ generation: UInt64 = 1) -> PathStatus {
        PathStatus(
            target: .general,
            verdict: TargetVerdict(.notReachable(.noRoute)),
            pathGeneration: generation
        )
    }

    private func published(_ status: PathStatus, _ probe: ProbeResult? = nil) -> Schedule.Action {
        .publish(ValidatedStatus(status: status, probe: probe))
    }

    /// Returns a schedule whose first probe ended 1 s after its start.
    private func probed(_ result: ProbeResult, interval: Duration? = .seconds(30)) -> Schedule {
        var schedule = Schedule(interval: interval)
        _ = schedule.take(reachable(), now: at(0))
        _ = schedule.ended(result, now: at(1), random: 0.5)
        return schedule
    }

    // MARK: Timing

    @Test func `a path is published and probed immediately`() {
        var schedule = Schedule(interval: nil)
        #expect(
            schedule.take(reachable(), now: at(0)) == [published(reachable()), .start(.to("198.51.100.7"))]
        )
        #expect(schedule.nextDue == nil)
        #expect(schedule.ended(good, now: at(1), random: 0) == [published(reachable(), good)])
    }

    @Test func `nothing is probed without a path`() {
        for verdict in [PathStatus.Verdict.notReachable(.noRoute), .unknown(.resolving)] {
            var schedule = Schedule(interval: .seconds(30))
            let status = PathStatus(target: .general, verdict: TargetVerdict(verdict), pathGeneration: 0)
            #expect(schedule.take(status, now: at(0)) == [published(status)])
            #expect(schedule.check(now: at(1)).isEmpty)
            #expect(schedule.timeHasPassed(now: at(3600)).isEmpty)
            #expect(schedule.nextDue == nil)
        }
    }

    @Test(arguments: [(0.0, 27.0), (0.5, 30.0), (1.0, 33.0)])
    func `a valid path is probed again after the interval with 10 % jitter`(
        random: Double,
        seconds: Double
    ) {
        var schedule = Schedule(interval: .seconds(30))
        _ = schedule.take(reachable(), now: at(0))
        _ = schedule.ended(good, now: at(1), random: random)
        #expect(schedule.nextDue == at(1 + seconds))
        #expect(schedule.timeHasPassed(now: at(0.9 + seconds)).isEmpty)
        #expect(schedule.timeHasPassed(now: at(1 + seconds)) == [.start(.to("198.51.100.7"))])
    }

    @Test func `without an interval a path is probed once regardless of the result`() {
        for result in [good, bad] {
            #expect(probed(result, interval: nil).nextDue == nil)
        }
    }

    @Test func `an interval is at least one second`() {
        #expect(probed(good, interval: .zero).nextDue == at(2))
    }

    @Test func `a failed path is probed again after 1, 2, 4 seconds, up to the interval`() {
        var schedule = Schedule(interval: .seconds(30))
        var now = at(0)
        _ = schedule.take(reachable(), now: now)
        var waits: [Duration] = []
        for result in [bad, bad, ProbeResult(.captive(CaptivePortal())), bad, bad, bad, bad] {
            _ = schedule.ended(result, now: now, random: 0.5)
            let due = schedule.nextDue ?? now
            waits.append(now.duration(to: due))
            now = due
            #expect(schedule.timeHasPassed(now: now) == [.start(.to("198.51.100.7"))])
        }
        #expect(waits == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
        _ = schedule.ended(good, now: now, random: 0.5)
        _ = schedule.timeHasPassed(now: now + .seconds(30))
        _ = schedule.ended(bad, now: now + .seconds(30), random: 0.5)
        #expect(schedule.nextDue == now + .seconds(31), "a success resets the delay")
    }

    @Test(arguments: [(0.0, 750), (1.0, 1250)])
    func `the delay after a failure has 25 % jitter`(random: Double, milliseconds: Int) {
        var schedule = Schedule(interval: .seconds(30))
        _ = schedule.take(reachable(), now: at(0))
        _ = schedule.ended(bad, now: at(0), random: random)
        #expect(schedule.nextDue == at(0) + .milliseconds(milliseconds))
    }

    @Test func `any number of failures does not overflow the delay`() {
        var schedule = Schedule(interval: .seconds(86_400))
        _ = schedule.take(reachable(), now: at(0))
        var now = at(0)
        for _ in 0..<200 {
            _ = schedule.ended(bad, now: now, random: 1)
            now = schedule.nextDue ?? now
            _ = schedule.timeHasPassed(now: now)
        }
        _ = schedule.ended(bad, now: now, random: 0.5)
        #expect(schedule.nextDue == now + .seconds(86_400))
    }

    // MARK: Path changes

    @Test func `an increased generation drops the result and probes the new path`() {
        var schedule = probed(good)
        #expect(
            schedule.take(reachable(2), now: at(2)) == [published(reachable(2)), .start(.to("198.51.100.7"))]
        )
    }

    @Test func `another destination of the same name is a different path`() {
        var schedule = probed(good)
        let other = reachable(to: "198.51.100.8")
        #expect(schedule.take(other, now: at(2)) == [published(other), .start(.to("198.51.100.8"))])
    }

    @Test func `a lost path is published without a result and cancels the schedule`() {
        var schedule = probed(good)
        #expect(schedule.take(gone(), now: at(2)) == [published(gone())])
        #expect(schedule.nextDue == nil)
    }

    @Test func `a probe over a lost path is cancelled and its result dropped`() {
        var schedule = Schedule(interval: .seconds(30))
        _ = schedule.take(reachable(), now: at(0))
        #expect(schedule.take(gone(), now: at(1)) == [.cancel, published(gone())])
        #expect(schedule.ended(good, now: at(2), random: 0).isEmpty)
    }

    @Test func `the next probe waits for the end of the cancelled one`() {
        var schedule = Schedule(interval: .seconds(30))
        _ = schedule.take(reachable(), now: at(0))
        #expect(schedule.take(reachable(2), now: at(1)) == [.cancel, published(reachable(2))])
        #expect(schedule.take(reachable(3), now: at(2)) == [published(reachable(3))])
        #expect(schedule.timeHasPassed(now: at(3)).isEmpty)
        #expect(schedule.ended(good, now: at(4), random: 0) == [.start(.to("198.51.100.7"))])
        #expect(schedule.ended(good, now: at(5), random: 0) == [published(reachable(3), good)])
    }

    @Test func `a flapping link starts at most one probe per 250 ms`() {
        var schedule = Schedule(interval: .seconds(30))
        _ = schedule.take(reachable(), now: at(0))
        _ = schedule.take(reachable(2), now: at(0.1))
        _ = schedule.ended(bad, now: at(0.1), random: 0)
        #expect(schedule.nextDue == at(0.25))
        #expect(schedule.timeHasPassed(now: at(0.25)) == [.start(.to("198.51.100.7"))])
    }

    // MARK: Checks

    @Test func `a check probes immediately and replaces the scheduled probe`() {
        var schedule = probed(good)
        #expect(schedule.check(now: at(2)) == [.start(.to("198.51.100.7"))])
        #expect(schedule.nextDue == nil)
    }

    @Test func `checks during a probe start no further probe`() {
        var schedule = Schedule(interval: .seconds(30))
        _ = schedule.take(reachable(), now: at(0))
        #expect(schedule.check(now: at(0.5)).isEmpty)
        _ = schedule.ended(good, now: at(1), random: 0.5)
        #expect(schedule.nextDue == at(31))
    }

    @Test func `checks start at most one probe per second`() {
        var schedule = Schedule(interval: nil)
        _ = schedule.take(reachable(), now: at(0))
        _ = schedule.ended(bad, now: at(0.1), random: 0)
        #expect(schedule.check(now: at(0.2)).isEmpty)
        #expect(schedule.check(now: at(0.3)).isEmpty)
        #expect(schedule.nextDue == at(1))
        #expect(schedule.timeHasPassed(now: at(1)) == [.start(.to("198.51.100.7"))])
    }

    @Test func `a check does not delay an earlier scheduled probe`() {
        var schedule = Schedule(interval: .seconds(1))
        _ = schedule.take(reachable(), now: at(0))
        _ = schedule.ended(bad, now: at(0.01), random: 0)
        let due = schedule.nextDue
        #expect(schedule.check(now: at(0.02)).isEmpty)
        #expect(schedule.nextDue == due)
    }
}

extension NetworkPath {
    /// Returns a path to an IPv4 address, always over the same interface.
    static func to(_ destination: String) -> NetworkPath {
        NetworkPath(
            destination: IPAddress(destination)!,
            interface: .fake(2),
            gateway: IPAddress("192.0.2.2"),
            source: IPAddress("192.0.2.1"),
            isLocal: false,
            prefixLength: 0,
            table: 254
        )
    }
}

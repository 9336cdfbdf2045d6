internal import NetwatchEventLoop
internal import Testing

@testable internal import netwatch

@Suite struct HostTallyTests {
    private let start = BootInstant.now

    private func at(_ seconds: Int) -> BootInstant { start + .seconds(seconds) }

    @Test func `time is counted per state`() {
        var tally = HostTally(.unknown, now: at(0))
        #expect(tally.summary(now: at(3)) == "unknown, 0 changes, never known")
        #expect(tally.record(.reachable, now: at(10)) == .seconds(10))
        #expect(tally.record(.reachable, now: at(15)) == nil, "another path is not another state")
        #expect(tally.age(now: at(16)) == .seconds(6))
        #expect(tally.record(.notReachable, now: at(40)) == .seconds(30))
        #expect(tally.changes == 2)
        #expect(tally.time(.reachable, now: at(50)) == .seconds(30))
        #expect(tally.time(.notReachable, now: at(50)) == .seconds(10))
        #expect(tally.time(.unknown, now: at(50)) == .seconds(10))
        #expect(tally.summary(now: at(50)) == "not reachable, 2 changes, reachable 75.0 % of 40.0 s")
    }

    @Test func `the summary uses the singular for one change`() {
        var tally = HostTally(.notReachable, now: at(0))
        #expect(tally.record(.reachable, now: at(2)) == .seconds(2))
        #expect(tally.summary(now: at(3)) == "reachable, 1 change, reachable 33.3 % of 3.0 s")
    }
}

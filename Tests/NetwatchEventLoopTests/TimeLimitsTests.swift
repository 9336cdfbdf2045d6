internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchEventLoop

/// Time limits, with simulated time.
@Suite struct TimeLimitsTests {
    private let start = BootInstant.now
    private let fired = Recorder<Int>()

    /// Returns limits with these deadlines, in seconds after the start. A limit that is judged records its deadline.
    private func limits(_ deadlines: Int...) -> TimeLimits {
        var limits = TimeLimits()
        for deadline in deadlines {
            _ = limits.insert(deadline: start + .seconds(deadline)) { [fired] in fired.record(deadline) }
        }
        return limits
    }

    /// Judges the limits at a time after the start. Returns the deadlines of those that were due.
    private func judge(_ limits: inout TimeLimits, at time: Duration) -> [Int] {
        let earlier = fired.values.count
        while let body = limits.popDue(at: start + time) { body() }
        return Array(fired.values.dropFirst(earlier))
    }

    @Test func `limits that are judged in time are due in the order of their deadlines`() {
        var limits = limits(3, 2, 5)
        #expect(judge(&limits, at: .seconds(1)).isEmpty)
        #expect(judge(&limits, at: .seconds(2)) == [2])
        #expect(judge(&limits, at: .seconds(3) + TimeLimits.tolerance) == [3])
        #expect(limits.earliest == start + .seconds(5))
    }

    @Test func `limits that passed while the loop did not run are postponed by the lateness`() {
        var limits = limits(2, 9)
        let late = Duration.milliseconds(2500)
        #expect(judge(&limits, at: late).isEmpty)
        #expect(limits.earliest == start + .seconds(3))
        #expect(judge(&limits, at: .milliseconds(2999)).isEmpty)
        #expect(judge(&limits, at: .seconds(3)) == [2])
        #expect(limits.earliest == start + .seconds(9))
    }

    @Test func `limits are postponed by at most a second`() {
        var limits = limits(2)
        #expect(judge(&limits, at: .seconds(3600)).isEmpty)
        #expect(limits.earliest == start + .seconds(3600) + TimeLimits.maximumGrace)
    }

    @Test func `a limit is postponed only once, even if the loop is late again`() {
        var limits = limits(2, 20)
        #expect(judge(&limits, at: .seconds(10)).isEmpty)
        #expect(judge(&limits, at: .seconds(19)) == [2])
        #expect(judge(&limits, at: .seconds(30)).isEmpty)
        #expect(judge(&limits, at: .seconds(31)) == [20])
    }

    @Test func `a removed limit is not due`() {
        var limits = TimeLimits()
        let timer = limits.insert(deadline: start) { [fired] in fired.record(0) }
        #expect(limits.remove(timer) != nil)
        #expect(limits.earliest == nil)
        #expect(judge(&limits, at: .seconds(1)).isEmpty)
    }
}

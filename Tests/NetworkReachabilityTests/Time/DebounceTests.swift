internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct DebounceTests {
    private let start = BootInstant.now
    private var debounce = Debounce(quietPeriod: .milliseconds(100), maxDelay: .seconds(1))

    @Test func `a change is reported once after the quiet period`() {
        var debounce = debounce
        #expect(debounce.due == nil)
        debounce.note(at: start)
        debounce.note(at: start + .milliseconds(60))
        #expect(debounce.due == start + .milliseconds(160))
        let early = debounce.takeDue(at: start + .milliseconds(159))
        let due = debounce.takeDue(at: start + .milliseconds(160))
        let again = debounce.takeDue(at: start + .seconds(5))
        #expect((early, due, again) == (false, true, false))
    }

    @Test func `continuous changes are reported within one second`() {
        var debounce = debounce
        for tick in 0..<100 { debounce.note(at: start + .milliseconds(50 * tick)) }
        #expect(debounce.due == start + .seconds(1))
        let isDue = debounce.takeDue(at: start + .seconds(1))
        #expect(isDue)
        debounce.note(at: start + .seconds(7))
        #expect(debounce.due == start + .milliseconds(7100))
    }
}

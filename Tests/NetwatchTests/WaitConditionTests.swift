internal import NetwatchEventLoop
internal import Testing

@testable internal import netwatch

@Suite struct WaitConditionTests {
    private let start = BootInstant.now

    private func at(_ seconds: Int) -> BootInstant { start + .seconds(seconds) }

    @Test func `without any, all parts must be met`() {
        var condition = WaitCondition(parts: 2, isAny: false, stable: .zero)
        #expect(condition.due == nil && condition.missing == [0, 1])
        condition.take(part: 0, isMet: true, isInterrupted: false, now: at(1))
        #expect(condition.due == nil && condition.missing == [1])
        condition.take(part: 1, isMet: true, isInterrupted: false, now: at(3))
        #expect(condition.due == at(3) && condition.missing.isEmpty)
        condition.take(part: 0, isMet: false, isInterrupted: false, now: at(4))
        #expect(condition.due == nil && condition.missing == [0])
    }

    @Test func `with any, the part that has been met longest is sufficient`() {
        var condition = WaitCondition(parts: 3, isAny: true, stable: .seconds(10))
        condition.take(part: 1, isMet: true, isInterrupted: false, now: at(1))
        condition.take(part: 2, isMet: true, isInterrupted: false, now: at(2))
        #expect(condition.due == at(11))
        condition.take(part: 1, isMet: false, isInterrupted: false, now: at(5))
        #expect(condition.due == at(12))
    }

    @Test func `an interruption restarts the stable time, a repeated report does not`() {
        var condition = WaitCondition(parts: 1, isAny: false, stable: .seconds(2))
        condition.take(part: 0, isMet: true, isInterrupted: false, now: at(1))
        condition.take(part: 0, isMet: true, isInterrupted: false, now: at(2))
        #expect(condition.due == at(3))
        condition.take(part: 0, isMet: true, isInterrupted: true, now: at(2))
        #expect(condition.due == at(4))
        condition.take(part: 0, isMet: false, isInterrupted: true, now: at(3))
        #expect(condition.due == nil)
    }
}

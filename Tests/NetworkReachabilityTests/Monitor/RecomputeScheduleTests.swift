internal import Testing

@testable internal import NetworkReachability

@Suite struct RecomputeScheduleTests {
    private let start = ContinuousClock.now
    private var schedule: RecomputeSchedule

    init() {
        schedule = RecomputeSchedule(
            confirmDelay: .milliseconds(150),
            auditInterval: .seconds(60),
            now: start
        )
    }

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    @Test func `the first event is acted on at once, and confirmed after a quiet time`() {
        var schedule = schedule
        schedule.noteEvents(isOverrun: false, now: at(0))
        #expect(schedule.takeDue(now: at(0)) == .changed)
        #expect(schedule.takeDue(now: at(149)) == nil)
        #expect(schedule.takeDue(now: at(150)) == .everything)
        #expect(schedule.nextDue == at(60_150))
    }

    @Test func `a storm is acted on at a steady pace and confirmed when it is over`() {
        var schedule = schedule
        var runs = 0
        for millisecond in 0..<1000 {
            schedule.noteEvents(isOverrun: false, now: at(millisecond))
            if schedule.takeDue(now: at(millisecond)) != nil { runs += 1 }
        }
        #expect(runs == 100)
        #expect(schedule.takeDue(now: at(1148)) == .changed)
        #expect(schedule.takeDue(now: at(1149)) == .everything)
    }

    @Test func `overruns in a row slow the pace down to once a second, and are forgotten after a quiet run`()
    {
        var schedule = schedule
        var runs: [Int] = []
        for millisecond in 0..<10_000 {
            schedule.noteEvents(isOverrun: true, now: at(millisecond))
            if schedule.takeDue(now: at(millisecond)) != nil { runs.append(millisecond) }
        }
        let gaps = zip(runs, runs.dropFirst()).map { $1 - $0 }
        #expect(gaps.prefix(6) == [50, 100, 200, 400, 800, 1000])
        #expect(gaps.max() == 1000)
        #expect(schedule.takeDue(now: at(20_000)) != nil)
        #expect(schedule.takeDue(now: at(90_000)) != nil)
        schedule.noteEvents(isOverrun: false, now: at(90_020))
        #expect(schedule.takeDue(now: at(90_020)) == .changed)
    }

    @Test func `everything is audited without any event`() {
        var schedule = schedule
        #expect(schedule.takeDue(now: at(59_999)) == nil)
        #expect(schedule.takeDue(now: at(60_000)) == .everything)
        #expect(schedule.nextDue == at(120_000))
    }
}

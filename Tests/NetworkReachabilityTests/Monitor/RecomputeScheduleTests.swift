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

    @Test func `the first event causes a lookup immediately and a confirmation after a quiet period`() {
        var schedule = schedule
        schedule.noteEvents(isOverrun: false, now: at(0))
        #expect(schedule.takeDue(now: at(0)) == .changed)
        #expect(schedule.takeDue(now: at(149)) == nil)
        #expect(schedule.takeDue(now: at(150)) == .everything)
        #expect(schedule.nextDue == at(60_150))
    }

    @Test func `a storm causes lookups at a steady rate and a confirmation when it is over`() {
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

    @Test func `consecutive overruns slow lookups down to one per second until a run without overrun`() {
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

    @Test func `everything is looked up periodically without any event`() {
        var schedule = schedule
        #expect(schedule.takeDue(now: at(59_999)) == nil)
        #expect(schedule.takeDue(now: at(60_000)) == .everything)
        #expect(schedule.nextDue == at(120_000))
    }
}

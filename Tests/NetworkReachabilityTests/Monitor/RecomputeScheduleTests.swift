internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct RecomputeScheduleTests {
    private let start = BootInstant.now
    private var schedule: RecomputeSchedule

    init() {
        schedule = RecomputeSchedule(
            confirmDelay: .milliseconds(150),
            auditInterval: .seconds(60),
            now: start
        )
    }

    private func at(_ milliseconds: Int) -> BootInstant { start + .milliseconds(milliseconds) }

    @Test func `the first event causes a lookup immediately and a confirmation after a quiet period`() {
        var schedule = schedule
        schedule.noteEvents(isOverrun: false, now: at(0))
        #expect(schedule.takeDue(now: at(0)) == .changed)
        #expect(schedule.takeDue(now: at(149)) == nil)
        #expect(schedule.takeDue(now: at(150)) == .everything)
        #expect(schedule.nextDue == at(60_150))
    }

    @Test func `a storm of events causes lookups at doubling intervals, then at a steady rate`() {
        let runs = runs(ofEventsAt: Array(0..<1000))
        #expect(Array(runs.prefix(8)) == [0, 1, 3, 7, 15, 25, 35, 45])
        #expect(runs.count == 103)
    }

    @Test func `a confirmation follows a storm`() {
        var schedule = schedule
        for millisecond in 0...20 {
            schedule.noteEvents(isOverrun: false, now: at(millisecond))
            _ = schedule.takeDue(now: at(millisecond))
        }
        #expect(schedule.takeDue(now: at(169)) == .changed)
        #expect(schedule.takeDue(now: at(170)) == .everything)
    }

    @Test func `intervals are short again only after a quiet period`() {
        #expect(runs(ofEventsAt: [0, 1, 2, 3, 103, 104, 105, 106]) == [0, 1, 3, 103, 104, 106])
        #expect(runs(ofEventsAt: [0, 1, 3, 7, 106, 107, 115]) == [0, 1, 3, 7, 106, 116])
    }

    /// The milliseconds at which lookups run because of events at the given milliseconds.
    private func runs(ofEventsAt events: [Int]) -> [Int] {
        var schedule = schedule
        return (0..<1000).filter { millisecond in
            if events.contains(millisecond) { schedule.noteEvents(isOverrun: false, now: at(millisecond)) }
            return schedule.takeDue(now: at(millisecond)) == .changed
        }
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
        #expect(schedule.takeDue(now: at(60_000)) == .audit)
        #expect(schedule.nextDue == at(120_000))
    }
}

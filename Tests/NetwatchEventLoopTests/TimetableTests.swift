internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchEventLoop

@Suite struct TimetableTests {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `keys are returned in the order of their times after random changes`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var (timetable, expected) = (Timetable<Int64, Duration>(), [Int64: Duration]())
        for _ in 0..<300 {
            let key = Int64.random(in: 0..<60, using: &random)
            let isRemoved = Int.random(in: 0..<4, using: &random) == 0
            // Some times are equal.
            let moment: Duration? = isRemoved ? nil : .seconds(Int.random(in: 0..<100, using: &random))
            timetable.set(key, to: moment)
            expected[key] = moment
        }
        #expect(timetable.first == expected.values.min())
        var keys: [Int64] = []
        while let key = timetable.removeFirst(until: .seconds(100)) { keys.append(key) }
        #expect(keys == expected.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map(\.key))
        #expect(timetable.first == nil)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `each key is due once, at the time that was set last`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var timetable = Timetable<Int, BootInstant>()
        var expected: [Int: BootInstant] = [:]
        var now = BootInstant.now
        for _ in 0..<2000 {
            let key = Int.random(in: 0..<50, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                timetable.set(key, to: nil)
                expected[key] = nil
            case 1:
                now = now + .milliseconds(Int.random(in: 0..<20, using: &random))
                var due: [Int] = []
                while let key = timetable.removeFirst(until: now) { due.append(key) }
                #expect(due.sorted() == expected.filter { $0.value <= now }.keys.sorted(), "seed \(seed)")
                for key in due { expected[key] = nil }
            default:
                let moment = now + .milliseconds(Int.random(in: 0..<100, using: &random))
                timetable.set(key, to: moment)
                expected[key] = moment
            }
            #expect(timetable.first == expected.values.min())
        }
    }

    @Test func `no key is returned before its time`() {
        var timetable = Timetable<Int64, Duration>()
        timetable.set(1, to: .seconds(2))
        #expect(timetable.removeFirst(until: .seconds(1)) == nil)
        #expect(timetable.removeFirst(until: .seconds(2)) == 1)
    }
}

internal import Testing

@testable internal import OfflineQueue

@Suite struct TimetableTests {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `keys are returned in the order of their times after random changes`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (timetable, expected) = (Timetable<Int64>(), [Int64: Moment]())
        for _ in 0..<300 {
            let lane = Int64.random(in: 0..<60, using: &random)
            let moment =
                Int.random(in: 0..<4, using: &random) == 0 ? nil : random.uniform(.zero ... .seconds(9))
            timetable.set(lane, to: moment)
            expected[lane] = moment
        }
        #expect(timetable.first == expected.values.min())
        var lanes: [Int64] = []
        while let lane = timetable.removeFirst(until: .seconds(9)) { lanes.append(lane) }
        #expect(lanes == expected.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map(\.key))
        #expect(timetable.first == nil)
    }

    @Test func `no key is returned before its time`() {
        var timetable = Timetable<Int64>()
        timetable.set(1, to: .seconds(2))
        #expect(timetable.removeFirst(until: .seconds(1)) == nil)
        #expect(timetable.removeFirst(until: .seconds(2)) == 1)
    }
}

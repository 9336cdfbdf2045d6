internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite struct WakeUpsTests {
    @Test(arguments: 0..<20) func `each key is due once, at the time that was set last`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var wakeUps = WakeUps<Int>()
        var expected: [Int: BootInstant] = [:]
        var now = BootInstant.now
        for _ in 0..<2000 {
            let key = Int.random(in: 0..<50, using: &generator)
            switch Int.random(in: 0..<6, using: &generator) {
            case 0:
                wakeUps.set(key, nil)
                expected[key] = nil
            case 1:
                now = now + .milliseconds(Int.random(in: 0..<20, using: &generator))
                let due = expected.filter { $0.value <= now }.keys.sorted()
                #expect(wakeUps.takeDue(at: now).sorted() == due, "seed \(seed)")
                for key in due { expected[key] = nil }
            default:
                let moment = now + .milliseconds(Int.random(in: 0..<100, using: &generator))
                wakeUps.set(key, moment)
                expected[key] = moment
            }
            if let first = expected.values.min() { #expect(wakeUps.earliest! <= first) }
        }
    }
}

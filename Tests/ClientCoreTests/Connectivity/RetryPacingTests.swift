internal import Testing

@testable internal import ClientCore

/// How retries are spread over time.
@Suite struct RetryPacingTests {
    /// The delays are random, so each test runs 50 times.
    @Test(arguments: 0..<50)
    func `the first requests start at once and the others in order, one after another`(_: Int) {
        let pacing = RetryPacing(atOnce: 3, interval: .milliseconds(100))
        let offsets = pacing.offsets(of: 20)
        #expect(offsets.prefix(3).allSatisfy { $0 == .zero })
        for (former, latter) in zip(offsets.dropFirst(2), offsets.dropFirst(3)) {
            #expect((Duration.milliseconds(50)...Duration.milliseconds(150)).contains(latter - former))
        }
    }

    @Test(arguments: 0..<50) func `delays double up to the maximum and are random`(_: Int) {
        let pacing = RetryPacing(firstDelay: .seconds(1), longestDelay: .seconds(5))
        #expect(pacing.delay(after: 0) == .zero)
        for (failures, most) in [(1, 1.0), (2, 2), (3, 4), (4, 5), (5, 5), (1000, 5), (.max, 5)] {
            let delay = pacing.delay(after: failures).inSeconds
            #expect(delay <= most && delay >= most * 0.75)
        }
        let delays = Set((0..<10).map { _ in pacing.delay(after: 1) })
        #expect(delays.count > 1)
    }

    @Test func `invalid values are replaced`() {
        let pacing = RetryPacing(
            atOnce: 0,
            interval: .seconds(-1),
            firstDelay: .zero,
            longestDelay: .seconds(-1)
        )
        #expect(pacing.atOnce == 1)
        #expect(pacing.interval == .zero)
        #expect(pacing.firstDelay == .milliseconds(1))
        #expect(pacing.longestDelay == .milliseconds(1))
    }
}

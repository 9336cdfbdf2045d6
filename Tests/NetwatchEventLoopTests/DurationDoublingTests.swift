internal import NetwatchEventLoop
internal import Testing

@Suite struct DurationDoublingTests {
    @Test func `a delay doubles up to its limit`() {
        let delays = (0...5).map { Duration.seconds(1).doubled(times: $0, upTo: .seconds(10)) }
        #expect(delays == [1, 2, 4, 8, 10, 10].map(Duration.seconds))
    }

    @Test func `a delay above its limit is the limit`() {
        #expect(Duration.seconds(20).doubled(times: 0, upTo: .seconds(10)) == .seconds(10))
    }

    @Test func `negative counts do not change a delay, and zero stays zero`() {
        #expect(Duration.seconds(1).doubled(times: -3, upTo: .seconds(10)) == .seconds(1))
        #expect(Duration.zero.doubled(times: .max, upTo: .seconds(10)) == .zero)
    }

    @Test func `the longest limit does not overflow`() {
        let limit = Duration.seconds(Int64.max)
        #expect(Duration.seconds(Int64.max / 2).doubled(times: 2, upTo: limit) == limit)
        #expect(Duration.nanoseconds(1).doubled(times: .max, upTo: limit) == limit)
    }
}

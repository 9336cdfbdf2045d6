internal import OfflineQueue
internal import Testing

@Suite struct DurationHistogramTests {
    @Test func `durations are counted up to each limit, and longer ones only in the total`() {
        var histogram = DurationHistogram(limits: [.seconds(1), .seconds(10)])
        for seconds in [0, 1, 2, 10, 60] { histogram.add(.seconds(seconds)) }
        #expect(histogram.countsUpToLimits == [2, 4])
        #expect(histogram.count == 5 && histogram.sum == .seconds(73))
    }
}

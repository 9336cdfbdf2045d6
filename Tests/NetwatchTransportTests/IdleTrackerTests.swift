internal import NetwatchEventLoop
internal import Testing

@testable internal import NetwatchTransport

/// The detection of idle transfers, with simulated time.
@Suite struct IdleTrackerTests {
    /// Simulates a check once a second. Returns the checks that found no new bytes for three seconds.
    private func ends(_ bytes: [Int64?]) -> [Int] {
        var tracker = IdleTracker()
        let start = BootInstant.now
        return bytes.enumerated().compactMap { second, bytes in
            tracker.exceeds(.seconds(3), at: start + .seconds(second), bytes: bytes) ? second : nil
        }
    }

    @Test func `the timeout runs from the last check that found new bytes`() {
        #expect(ends([0, 0, 0, 0, 0]) == [3, 4])
        #expect(ends([0, 5, 5, 5, 5, 5]) == [4, 5])
    }

    @Test func `single bytes restart the timeout, however slow the transfer is`() {
        #expect(ends([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]).isEmpty)
    }

    @Test func `a fast start does not extend the timeout`() {
        #expect(ends([0, 3_000_000, 3_000_000, 3_000_000, 3_000_000]) == [4])
    }

    @Test func `the timeout restarts after a time in which silence is allowed`() {
        #expect(ends([0, 0, nil, nil, nil, nil, 0, 0, 0, 0]) == [9])
    }
}

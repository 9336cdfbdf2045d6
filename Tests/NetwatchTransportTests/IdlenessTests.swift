internal import Testing

@testable internal import NetwatchTransport

/// The detection of silence, with simulated time.
@Suite struct IdlenessTests {
    /// Checks once a second. Returns the checks at which the silence had lasted for three seconds.
    private func ends(_ bytes: [Int64?]) -> [Int] {
        var idleness = Idleness()
        let start = ContinuousClock.now
        return bytes.enumerated().compactMap { look, bytes in
            idleness.lasts(.seconds(3), at: start + .seconds(look), bytes: bytes) ? look : nil
        }
    }

    @Test func `silence lasts since the look that has seen something new`() {
        #expect(ends([0, 0, 0, 0, 0]) == [3, 4])
        #expect(ends([0, 5, 5, 5, 5, 5]) == [4, 5])
    }

    @Test func `a byte now and then is no silence, however slow that is`() {
        #expect(ends([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]).isEmpty)
    }

    @Test func `what came fast before makes no difference`() {
        #expect(ends([0, 3_000_000, 3_000_000, 3_000_000, 3_000_000]) == [4])
    }

    @Test func `the time that does not count begins anew`() {
        #expect(ends([0, 0, nil, nil, nil, nil, 0, 0, 0, 0]) == [9])
    }
}

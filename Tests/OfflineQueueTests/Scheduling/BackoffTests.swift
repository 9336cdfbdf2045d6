internal import OfflineQueue
internal import Testing

@Suite struct BackoffTests {
    @Test func `delays grow from the base to the cap and vary`() {
        let backoff = Backoff()
        var random = SplitMix64(seed: 7)
        for failures in [0, 1, 2, 5, 20, 1000, Int.max] {
            let ceiling = min(Duration.seconds(900), .seconds(2) * (1 << min(failures, 20)))
            let delays = (0..<200).map { _ in backoff.delay(after: failures, using: &random) }
            #expect(delays.allSatisfy { (.seconds(2)...ceiling).contains($0) })
            #expect(Set(delays).count > 100 || failures == 0)
        }
    }
}

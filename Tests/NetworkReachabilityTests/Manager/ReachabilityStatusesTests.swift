internal import Dispatch
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

/// The statuses that slow readers and suspended queues receive.
@Suite struct ReachabilityStatusesTests {
    private func status(_ isReachable: Bool) -> PathStatus {
        let verdict: PathStatus.Verdict =
            isReachable ? .reachable(.to("198.51.100.7")) : .notReachable(.noRoute)
        return PathStatus(target: .general, verdict: TargetVerdict(verdict), pathGeneration: 1)
    }

    @Test func `a slow reader does not receive the same status twice`() async {
        let (paths, source) = AsyncStream.makeStream(
            of: PathStatus.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        var iterator = ReachabilityStatuses(paths: paths).makeAsyncIterator()
        source.yield(status(true))
        #expect(await iterator.next() == .reachable(.ethernetOrWiFi))
        // The host became unreachable and reachable again while the reader was not waiting.
        source.yield(status(false))
        source.yield(status(true))
        source.finish()
        #expect(await iterator.next() == nil)
    }

    @Test func `a suspended queue keeps a limited number of statuses, the newest last`()
        async throws
    {
        let queue = DispatchQueue(label: "slow")
        queue.suspend()
        let received = Recorder<NetworkReachabilityManager.NetworkReachabilityStatus>()
        let session = ListeningSession(queue: queue) { received.record($0) }
        for number in 0..<1000 { session.take(status(number.isMultiple(of: 2))) }
        queue.resume()
        try await received.waitForLast { $0 == .notReachable }
        queue.sync {}
        #expect(received.values.count <= 64)
        #expect(received.values.last == .notReachable)
        #expect(zip(received.values, received.values.dropFirst()).allSatisfy { $0 != $1 })
    }
}

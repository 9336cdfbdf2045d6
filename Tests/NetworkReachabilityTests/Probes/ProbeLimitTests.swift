internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite(.timeLimit(.minutes(5))) struct ProbeLimitTests {
    @Test func `validators share the limit of concurrent probes`() async throws {
        let limit = AsyncSemaphore(permits: 1)
        let loop = try ProbeLoop().get()
        let target = PathTarget.host(try #require(NetworkHost("127.0.0.1")))
        let status = PathMonitor.shared.watch(target) { _ in }.status
        let probes = [ManualProbe(), ManualProbe()]
        let cores = probes.map {
            ValidationCore(loop: loop, target: target, probe: $0, interval: nil, limit: limit) { _ in }
        }
        cores[0].take(status)
        try await probes[0].events.wait { $0.count == 1 }
        cores[1].take(status)
        try await limit.arrivals.until { limit.waitingCount == 1 }
        #expect(probes[1].starts.isEmpty)
        probes[0].answer(.valid)
        try await probes[1].events.wait { $0.count == 1 }
        probes[1].answer(.valid)
        for core in cores { core.stop() }
    }
}

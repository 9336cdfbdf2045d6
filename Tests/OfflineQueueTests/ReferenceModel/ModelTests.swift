internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Random calls to a store and to a simple model of it, with crashes, reboots and clock steps.
///
/// The number of runs is 20 to 10,000, depending on ``CheckSize``. Each has its own seed. The environment variable
/// `NETWATCH_MODEL_SEED` selects a single seed.
@Suite struct ModelTests {
    /// Seeds that have found bugs, which are always run.
    static let kept: [UInt64] = [412, 711, 838]

    private static let environment = ProcessInfo.processInfo.environment

    private static let seeds: [UInt64] = {
        if let one = environment["NETWATCH_MODEL_SEED"].flatMap(UInt64.init) { return [one] }
        return kept + Array(1...CheckSize.choose(small: 20, medium: 200, full: 10_000))
    }()

    @Test func `the store behaves like the model`() async throws {
        let begin = ContinuousClock.now
        let seeds = Seeds(Self.seeds)
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    while let seed = seeds.next() {
                        if let divergence = try await ModelRun.run(seed: seed) {
                            Issue.record("NETWATCH_MODEL_SEED=\(seed): \(divergence)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        print("model: \(Self.seeds.count) seeds of 200 calls in \(ContinuousClock.now - begin)")
    }

    @Test(arguments: InjectedFault.allCases)
    func `the model detects a faulty store`(fault: InjectedFault) async throws {
        for seed in 1...40 as ClosedRange<UInt64> {
            if try await ModelRun.run(seed: seed, fault: fault) != nil { return }
        }
        Issue.record("40 runs did not detect the fault")
    }
}

/// The seeds, which concurrent runs take one by one.
private final class Seeds: Sendable {
    private let left: Lock<ArraySlice<UInt64>>

    init(_ seeds: [UInt64]) { left = Lock(seeds[...]) }

    func next() -> UInt64? {
        let (seed, count) = left.withLock { ($0.popFirst(), $0.count) }
        if seed != nil, count > 0, count % 500 == 0 { print("model: \(count) seeds left") }
        return seed
    }
}

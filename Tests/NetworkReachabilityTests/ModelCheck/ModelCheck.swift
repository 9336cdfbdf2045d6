internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Synchronization

/// Random changes to real networks, after each of which every published status must be the truth, without
/// an audit.
enum ModelCheck {
    /// How the monitor of a scenario is made.
    struct Setup: Sendable {
        var settle: Duration
        /// In bytes: hardly any, the kernel's default, and plenty.
        var receiveBufferSize: Int
        var filtersRoutes: Bool
        /// What is broken on purpose.
        var faults = MonitorFaults()
        var confirmDelay = PathMonitor.Configuration().confirmDelay
        /// For how long statuses may differ from the truth. Only bounds how long a failing check takes: without
        /// an audit nothing heals a wrong status.
        var patience: Duration = .seconds(5)

        /// One of all combinations, by seed.
        init(seed: UInt64) {
            settle = .milliseconds(seed & 1 == 0 ? 30 : 0)
            filtersRoutes = seed & 2 == 0
            receiveBufferSize = [4096, 212_992, 8 * 1024 * 1024][Int((seed >> 2) % 3)]
        }

        func configuration(watching namespace: NetworkNamespace) -> PathMonitor.Configuration {
            var configuration = PathMonitor.Configuration()
            configuration.networkNamespace = namespace.path
            configuration.settle = settle
            configuration.receiveBufferSize = receiveBufferSize
            configuration.filtersRoutes = filtersRoutes
            configuration.faults = faults
            configuration.confirmDelay = confirmDelay
            // It would find whatever is missed.
            configuration.auditInterval = .seconds(24 * 3600)
            return configuration
        }
    }

    /// Runs scenarios side by side and waits for all of them, or for the first that is told to be enough.
    static func run(
        _ scenarios: [Scenario],
        until isEnough: @escaping @Sendable (ModelRun.Outcome) -> Bool = { _ in false }
    ) async throws -> [ModelRun.Outcome] {
        let outcomes = Recorder<ModelRun.Outcome>()
        let ended = Recorder<Bool>()
        let queue = ScenarioQueue(scenarios)
        // Most of the time they wait: for the monitor, or for the kernel.
        let threads = min(scenarios.count, ProcessInfo.processInfo.activeProcessorCount * 16)
        for _ in 0..<threads {
            try startDetachedThread(named: "model") {
                while let scenario = queue.next() {
                    let outcome = ModelRun.outcome(of: scenario, isStopped: { queue.isClosed })
                    outcomes.record(outcome)
                    if isEnough(outcome) { queue.close() }
                }
                ended.record(true)
            }
        }
        // Generous: 2,000 scenarios take some minutes.
        try await ended.wait(patience: .seconds(3 * 3600)) { $0.count == threads }
        return outcomes.values
    }
}

/// Scenarios that several threads share out among themselves.
private final class ScenarioQueue: Sendable {
    private let scenarios: Mutex<[Scenario]>
    private let closed = Atomic(false)

    init(_ scenarios: [Scenario]) { self.scenarios = Mutex(scenarios.reversed()) }

    var isClosed: Bool { closed.load(ordering: .relaxed) }

    func next() -> Scenario? {
        isClosed ? nil : scenarios.withLock { $0.popLast() }
    }

    func close() { closed.store(true, ordering: .relaxed) }
}

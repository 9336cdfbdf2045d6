internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Synchronization

/// A check that makes random changes to real networks, and verifies that all published statuses become correct.
///
/// The monitors run without audits (``PathMonitor/Configuration/auditInterval``), which would repair wrong statuses.
enum ModelCheck {
    /// The settings of a scenario's monitor.
    struct Setup: Sendable {
        var settle: Duration
        /// The size of the receive buffer in bytes: tiny, the kernel's default, or large.
        var receiveBufferSize: Int
        var filtersRoutes: Bool
        /// The port of the watched connections; `nil` if the monitor does not know it.
        var port: UInt16?
        /// Whether there are router advertisements and routes with a lifetime.
        ///
        /// Without them, the monitor does not repeat lookups because of lifetimes. These lookups would correct IPv6
        /// statuses after missed notifications.
        var hasRouter: Bool { didSet { faults.ignoresLifetimes = !hasRouter } }
        /// The faults to inject into the monitor. Default: none.
        var faults = MonitorFaults()
        var confirmDelay = PathMonitor.Configuration().confirmDelay
        /// The time for which statuses may be wrong before the check fails. Default: 30 s, because the monitor may be late
        /// on a busy machine. Nothing corrects a wrong status without an audit.
        var timeout: Duration = .seconds(30)

        /// Chooses one of the 48 combinations of settings by the seed.
        init(seed: UInt64) {
            settle = .milliseconds(seed & 1 == 0 ? 30 : 0)
            filtersRoutes = seed & 2 == 0
            port = seed & 4 == 0 ? nil : OperationGenerator.port
            hasRouter = seed & 8 == 0
            receiveBufferSize = [4096, 212_992, 8 * 1024 * 1024][Int((seed >> 4) % 3)]
            faults.ignoresLifetimes = !hasRouter
        }

        func configuration(watching namespace: NetworkNamespace) -> PathMonitor.Configuration {
            var configuration = PathMonitor.Configuration(in: namespace)
            configuration.settle = settle
            configuration.receiveBufferSize = receiveBufferSize
            configuration.filtersRoutes = filtersRoutes
            configuration.faults = faults
            configuration.confirmDelay = confirmDelay
            // Practically never, because an audit would find changes that the monitor has missed.
            configuration.auditInterval = .seconds(24 * 3600)
            return configuration
        }
    }

    /// Runs scenarios in parallel, and returns their outcomes.
    ///
    /// - Parameter isEnough: Called for each outcome. When it returns `true`, the remaining scenarios are stopped.
    static func run(
        _ scenarios: [Scenario],
        until isEnough: @escaping @Sendable (ModelCheckRun.Outcome) -> Bool = { _ in false }
    ) async throws -> [ModelCheckRun.Outcome] {
        let outcomes = Recorder<ModelCheckRun.Outcome>()
        let ended = Recorder<Bool>()
        let queue = ScenarioQueue(scenarios)
        // There are more threads than cores, because scenarios mostly wait for the monitor or for the kernel.
        let threads = min(scenarios.count, ProcessInfo.processInfo.activeProcessorCount * 16)
        for _ in 0..<threads {
            try startDetachedThread(named: "model") {
                while let scenario = queue.next() {
                    let outcome = ModelCheckRun.outcome(of: scenario, isStopped: { queue.isClosed })
                    outcomes.record(outcome)
                    if isEnough(outcome) { queue.close() }
                }
                ended.record(true)
            }
        }
        // The timeout is far above the expected time, because 2,000 scenarios take a few minutes.
        try await ended.wait(timeout: .seconds(3 * 3600)) { $0.count == threads }
        return outcomes.values
    }
}

/// A queue from which several threads take scenarios.
private final class ScenarioQueue: Sendable {
    private let scenarios: Lock<[Scenario]>
    private let closed = Atomic(false)

    init(_ scenarios: [Scenario]) { self.scenarios = Lock(scenarios.reversed()) }

    var isClosed: Bool { closed.load(ordering: .relaxed) }

    func next() -> Scenario? {
        isClosed ? nil : scenarios.withLock { $0.popLast() }
    }

    func close() { closed.store(true, ordering: .relaxed) }
}

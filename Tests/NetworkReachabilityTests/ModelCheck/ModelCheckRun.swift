internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability

/// One run of a scenario in new namespaces. It performs the operations in bursts, and after each burst it checks that
/// the monitor's statuses become correct.
///
/// Confined to the thread that creates it. Its methods block.
final class ModelCheckRun {
    /// The result of a run.
    struct Outcome: Sendable {
        let scenario: Scenario
        var mismatch: Mismatch?
        var commands = 0
        var refusals: [String] = []
        var overruns = 0
        /// The number of times that the correct status of an address changed.
        var changes = 0
        /// The time after each burst of operations until all statuses were correct, measured by polling.
        var delays: [Duration] = []
    }

    /// Statuses that stay wrong, with the operations after which they are wrong.
    struct Mismatch: Sendable, CustomStringConvertible {
        let operations: [Operation]
        let differences: [String]

        var description: String {
            (operations.map { "  \($0)" } + ["then stay wrong:"] + differences.map { "  \($0)" })
                .joined(separator: "\n")
        }
    }

    /// The minimum timeout while the kernel is about to change something by itself, such as a route that expires.
    private static let kernelTimeout: Duration = .seconds(8)

    private let scenario: Scenario
    private let testbed: ModelTestbed
    private let monitor: PathMonitor
    /// The watches with the port of the setup, and the watches of the same addresses with another port or without one.
    /// They share lookups while no rule depends on the port.
    private var groups: [WatchGroup]
    private let log: (String) -> Void
    private let isStopped: () -> Bool
    private var outcome: Outcome
    private var expectedAnswers: [IPAddress: RouteOracle.Answer] = [:]

    /// The watches with one port, and the oracle for it.
    private struct WatchGroup {
        let port: UInt16?
        let oracle: RouteOracle
        var watches: [IPAddress: PathWatch] = [:]
    }

    private init(_ scenario: Scenario, log: @escaping (String) -> Void, isStopped: @escaping () -> Bool)
        throws
    {
        self.scenario = scenario
        self.log = log
        self.isStopped = isStopped
        outcome = Outcome(scenario: scenario)
        testbed = try ModelTestbed(cables: scenario.cables, hasRouter: scenario.setup.hasRouter)
        let port = scenario.setup.port
        groups = [port, port == nil ? OperationGenerator.port : nil].map { [near = testbed.near] port in
            let addresses = Scenario.hosts.map { IPAddress($0)! }
            return WatchGroup(port: port, oracle: RouteOracle(in: near, addresses: addresses, port: port))
        }
        monitor = PathMonitor(configuration: scenario.setup.configuration(watching: testbed.near))
        for host in Scenario.hosts { watch(host) }
        monitor.narrowFilter()
    }

    private func watch(_ host: String) {
        for index in groups.indices {
            var options = PathOptions()
            options.port = groups[index].port
            let watch = monitor.watch(.host(NetworkHost(host)!), options: options) { _ in }
            groups[index].watches[IPAddress(host)!] = watch
        }
    }

    /// Runs a scenario until its first mismatch or its end.
    ///
    /// - Parameters:
    ///   - log: Called with the description of each operation. Default: nothing is logged.
    ///   - isStopped: Called before each burst of operations. When it returns `true`, the run ends early.
    static func outcome(
        of scenario: Scenario,
        log: @escaping (String) -> Void = { _ in },
        isStopped: @escaping () -> Bool = { false }
    ) -> Outcome {
        do {
            let run = try ModelCheckRun(scenario, log: log, isStopped: isStopped)
            try run.perform()
            return run.outcome
        } catch {
            var outcome = Outcome(scenario: scenario)
            outcome.mismatch = Mismatch(operations: [], differences: ["the check itself failed: \(error)"])
            return outcome
        }
    }

    private func perform() throws {
        var random = scenario.pauses
        var position = 0
        // Checks the first statuses, and waits until the monitor has confirmed them. A confirmation after the first
        // operation would hide a missed notification of it.
        try check(mustBeQuiet: true, after: [])
        while outcome.mismatch == nil, !isStopped(), position < scenario.operations.count {
            let burst = scenario.operations[position...].prefix(
                [1, 1, 1, 2, 3].randomElement(using: &random)!
            )
            position += burst.count
            for operation in burst {
                log("\(operation)")
                perform(operation)
            }
            // In half of the cases, the next burst may start while the monitor still processes this one.
            let mustBeQuiet = Bool.random(using: &random) || position == scenario.operations.count
            try check(mustBeQuiet: mustBeQuiet, after: scenario.operations[..<position])
        }
        if outcome.mismatch == nil, !isStopped() { checkAudit() }
        outcome.commands = testbed.commands
        outcome.refusals = testbed.refusals
        outcome.overruns = monitor.statistics.overruns
    }

    /// Verifies that an audit corrects nothing, also not what the oracle does not know, such as the gateway.
    private func checkAudit() {
        let corrections = monitor.audit()
        guard corrections > 0 else { return }
        outcome.mismatch = Mismatch(
            operations: scenario.operations,
            differences: ["an audit corrected \(corrections) addresses"]
        )
    }

    private func perform(_ operation: Operation) {
        testbed.perform(operation)
        for step in operation.steps {
            if case .unwatch(let host) = step {
                for index in groups.indices { groups[index].watches[IPAddress(host)!] = nil }
            }
            if case .watch(let host) = step { watch(host) }
        }
    }

    private func check(mustBeQuiet: Bool, after operations: ArraySlice<Operation>) throws {
        let differences = try waitForAgreement(mustBeQuiet: mustBeQuiet)
        guard !differences.isEmpty else { return }
        outcome.mismatch = Mismatch(operations: Array(operations), differences: differences)
    }

    /// Polls until all statuses are correct. Returns the differences that remain at the timeout.
    ///
    /// It polls, because the kernel's events are what the monitor may miss or misread.
    ///
    /// - Parameter mustBeQuiet: Whether the statuses must also still be correct after the monitor's confirmation.
    private func waitForAgreement(mustBeQuiet: Bool) throws -> [String] {
        let start = BootInstant.now
        var isCorrect = false
        while true {
            let snapshots = try groups.map { try $0.oracle.ask() }
            let isChanging = snapshots.contains(where: \.isChanging)
            let elapsed = BootInstant.now - start
            let differences = differences(from: snapshots)
            if differences.isEmpty, !isCorrect {
                isCorrect = true
                outcome.delays.append(elapsed)
            }
            let timeout = max(scenario.setup.timeout, isChanging ? Self.kernelTimeout : .zero)
            if elapsed > (differences.isEmpty ? Self.kernelTimeout : timeout) { return differences }
            let isQuiet = elapsed > scenario.setup.quietTime && !isChanging
            if differences.isEmpty, isQuiet || !mustBeQuiet { return [] }
            pause(milliseconds: differences.isEmpty ? 50 : 5)
        }
    }

    /// - Parameter snapshots: The snapshot of each group's oracle.
    private func differences(from snapshots: [RouteOracle.Snapshot]) -> [String] {
        outcome.changes += snapshots[0].expectedAnswers.count {
            expectedAnswers[$0.key] != nil && expectedAnswers[$0.key] != $0.value
        }
        expectedAnswers = snapshots[0].expectedAnswers
        return zip(groups, snapshots).flatMap { differences(of: $0, from: $1) }
    }

    private func differences(of group: WatchGroup, from snapshot: RouteOracle.Snapshot) -> [String] {
        let wrong = group.watches.compactMap { address, watch -> String? in
            let status = watch.status
            let expected = snapshot.expectedAnswers[address]!
            if status.agrees(with: expected) { return nil }
            let port = group.port.map { " port \($0)" } ?? ""
            return "\(address)\(port): published \(status.summary), but \(expected)"
        }
        return wrong + snapshot.contradictions
    }

    private func pause(milliseconds: Int) {
        var time = timespec(tv_sec: 0, tv_nsec: milliseconds * 1_000_000)
        nanosleep(&time, nil)
    }
}

extension ModelCheck.Setup {
    /// The time after an event until the monitor looks up nothing more without a new event.
    fileprivate var quietTime: Duration {
        settle + PathMonitor.Configuration().confirmDelay + .milliseconds(20)
    }
}

extension PathStatus {
    /// Returns whether the status is correct: the source address and the interface if the address is reachable,
    /// otherwise the reason.
    fileprivate func agrees(with expected: RouteOracle.Answer) -> Bool {
        switch (verdict, expected) {
        case (.reachable(let path), .reachable(let source, let interface)):
            path.source?.bytes == source && path.interfaceIndex == interface
        case (.notReachable(let reason), .notReachable(let expected)):
            reason == expected
        default:
            false
        }
    }

    fileprivate var summary: String {
        guard let path else { return "\(verdict)" }
        let source = path.source.map { "\($0)" } ?? "nothing"
        return "reachable(from \(source) by interface \(path.interfaceIndex), \(path.interfaceName))"
    }
}

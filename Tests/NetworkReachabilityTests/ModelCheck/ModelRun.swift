internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability

/// One scenario in namespaces of its own: a monitor, and operations one after the other, after which its
/// statuses must become the truth.
///
/// Confined to the thread that makes it, which waits.
final class ModelRun {
    /// What a run found.
    struct Outcome: Sendable {
        let scenario: Scenario
        var mismatch: Mismatch?
        var commands = 0
        var refusals: [String] = []
        var overruns = 0
        /// How often the truth about an address became another.
        var changes = 0
        /// How long after each burst of operations every status was the truth, as far as it can be told
        /// from asking again and again.
        var delays: [Duration] = []
    }

    /// Statuses that stay wrong.
    struct Mismatch: Sendable, CustomStringConvertible {
        let operations: [Operation]
        let differences: [String]

        var description: String {
            (operations.map { "  \($0)" } + ["then, for good:"] + differences.map { "  \($0)" })
                .joined(separator: "\n")
        }
    }

    /// The longest that the kernel takes to end what it does by itself.
    private static let kernelPatience: Duration = .seconds(8)

    private let scenario: Scenario
    private let testbed: ModelTestbed
    private let oracle: RouteOracle
    private let monitor: PathMonitor
    private var watches: [IPAddress: PathWatch] = [:]
    private let log: (String) -> Void
    private let isStopped: () -> Bool
    private var outcome: Outcome
    private var truths: [IPAddress: RouteOracle.Truth] = [:]

    private init(_ scenario: Scenario, log: @escaping (String) -> Void, isStopped: @escaping () -> Bool)
        throws
    {
        self.scenario = scenario
        self.log = log
        self.isStopped = isStopped
        outcome = Outcome(scenario: scenario)
        testbed = try ModelTestbed(cables: scenario.cables)
        oracle = RouteOracle(in: testbed.near, addresses: Scenario.hosts.map { IPAddress($0)! })
        monitor = PathMonitor(configuration: scenario.setup.configuration(watching: testbed.near))
        for host in Scenario.hosts { watch(host) }
        monitor.tightenFilter()
    }

    private func watch(_ host: String) {
        watches[IPAddress(host)!] = monitor.watch(.host(NetworkHost(host)!)) { _ in }
    }

    /// Runs a scenario to its first mismatch or its end.
    ///
    /// - Parameters:
    ///   - log: Is told of each operation.
    ///   - isStopped: Asked after each operation whether the rest is not wanted any more.
    static func outcome(
        of scenario: Scenario,
        log: @escaping (String) -> Void = { _ in },
        isStopped: @escaping () -> Bool = { false }
    ) -> Outcome {
        do {
            let run = try ModelRun(scenario, log: log, isStopped: isStopped)
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
        // The first statuses count too. And as long as the new links make the monitor look, it misses nothing.
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
            // Half of the time the next operation comes while the monitor is still at work on this one.
            let mustBeQuiet = Bool.random(using: &random) || position == scenario.operations.count
            try check(mustBeQuiet: mustBeQuiet, after: scenario.operations[..<position])
        }
        outcome.commands = testbed.commands
        outcome.refusals = testbed.refusals
        outcome.overruns = monitor.statistics.overruns
    }

    private func perform(_ operation: Operation) {
        testbed.perform(operation)
        for step in operation.steps {
            if case .unwatch(let host) = step { watches[IPAddress(host)!] = nil }
            if case .watch(let host) = step { watch(host) }
        }
    }

    private func check(mustBeQuiet: Bool, after operations: ArraySlice<Operation>) throws {
        let differences = try awaitTruth(mustBeQuiet: mustBeQuiet)
        guard !differences.isEmpty else { return }
        outcome.mismatch = Mismatch(operations: Array(operations), differences: differences)
    }

    /// Asks until every status is the truth and, if so wanted, still is after the confirm pass. Returns what
    /// is still different after a long while.
    private func awaitTruth(mustBeQuiet: Bool) throws -> [String] {
        let start = ContinuousClock.now
        var isTrue = false
        while true {
            let snapshot = try oracle.ask()
            let elapsed = ContinuousClock.now - start
            let differences = differences(from: snapshot)
            if differences.isEmpty, !isTrue {
                isTrue = true
                outcome.delays.append(elapsed)
            }
            if elapsed > (snapshot.isChanging ? Self.kernelPatience : scenario.setup.patience) {
                return differences
            }
            let isQuiet = elapsed > scenario.setup.quietTime && !snapshot.isChanging
            if differences.isEmpty, isQuiet || !mustBeQuiet { return [] }
            pause(milliseconds: differences.isEmpty ? 50 : 5)
        }
    }

    private func differences(from snapshot: RouteOracle.Snapshot) -> [String] {
        outcome.changes += snapshot.truths.count { truths[$0.key] != nil && truths[$0.key] != $0.value }
        truths = snapshot.truths
        let wrong = watches.compactMap { address, watch -> String? in
            let status = watch.status
            let truth = snapshot.truths[address]!
            return status.agrees(with: truth) ? nil : "\(address): published \(status.brief), but \(truth)"
        }
        return wrong + snapshot.contradictions
    }

    private func pause(milliseconds: Int) {
        var time = timespec(tv_sec: 0, tv_nsec: milliseconds * 1_000_000)
        nanosleep(&time, nil)
    }
}

extension ModelCheck.Setup {
    /// After that nothing is looked up any more without an event.
    fileprivate var quietTime: Duration {
        settle + PathMonitor.Configuration().confirmDelay + .milliseconds(20)
    }
}

extension PathStatus {
    /// Whether it says what is true: whether a packet would leave, from where and by which interface, and if
    /// not, why.
    fileprivate func agrees(with truth: RouteOracle.Truth) -> Bool {
        switch (verdict, truth) {
        case (.reachable(let path), .reachable(let source, let interface)):
            path.source?.bytes == source && path.interfaceIndex == interface
        case (.notReachable(let reason), .notReachable(let truth)):
            reason == truth
        default:
            false
        }
    }

    fileprivate var brief: String {
        guard let path else { return "\(verdict)" }
        let source = path.source.map { "\($0)" } ?? "nothing"
        return "reachable(from \(source) by interface \(path.interfaceIndex), \(path.interfaceName))"
    }
}

internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

// Serialized, because each test uses all cores of the machine.
@Suite(.serialized, .needsNetworkNamespaces)
struct ModelCheckTests {
    @Test func `after random changes every status matches the kernel's lookup`() async throws {
        let plan = Plan(environment: ProcessInfo.processInfo.environment)
        let outcomes = try await plan.run()
        for outcome in outcomes {
            guard let mismatch = outcome.mismatch else { continue }
            Issue.record("replay with NETWATCH_SEED=\(outcome.scenario.seed)\n\(mismatch)")
        }
        let report = ModelCheckReport(outcomes)
        print(report)
        #expect(report.changesMuch, "the operations changed too few statuses, so the check proves little")
    }

    @Test(
        .enabled(if: CheckSize.current != .small, "runs only in `make random`: it takes half a minute"),
        arguments: [
            (NetlinkEvent.Class.link, OperationGenerator.Kind.link), (.address, .address), (.route, .route),
            (.rule, .rule), (.nextHop, .nextHop), (.setting, .parameter),
        ]
    )
    func `the check detects a monitor that ignores a class of events`(
        event: NetlinkEvent.Class,
        focus: OperationGenerator.Kind
    ) async throws {
        let isNoticed = try await isNoticed(focus: focus) { $0.faults.ignoredClasses = [event] }
        #expect(isNoticed)
    }

    @Test(arguments: [
        (IPAddress.Family.ipv4, OperationGenerator.Kind.rule), (.ipv6, .route),
    ])
    func `the check detects a monitor that ignores the source address of connections`(
        family: IPAddress.Family,
        focus: OperationGenerator.Kind
    ) async throws {
        let isNoticed = try await isNoticed(focus: focus) { $0.faults.ignoredSources = [family] }
        #expect(isNoticed)
    }

    @Test(arguments: [nil, OperationGenerator.port])
    func `the check detects a monitor that ignores the port of connections`(port: UInt16?) async throws {
        let isNoticed = try await isNoticed(focus: .rule) {
            $0.port = port
            $0.faults.ignoresPorts = true
        }
        #expect(isNoticed)
    }

    @Test func `the check detects a monitor that ignores the lifetimes of routes`() async throws {
        let isNoticed = try await isNoticed(focus: .router) {
            $0.hasRouter = true
            $0.faults.ignoresLifetimes = true
        }
        #expect(isNoticed)
    }

    @Test func `the check detects late lookup answers without a confirmation`()
        async throws
    {
        let isNoticed = try await isNoticed {
            $0.faults.answersLate = true
            $0.confirmDelay = .seconds(3600)
        }
        #expect(isNoticed)
    }

    @Test func `late lookup answers are corrected by the confirmation`() async throws {
        let outcomes = try await ModelCheck.run(
            Self.scenarios(16, operations: 20) { $0.faults.answersLate = true }
        )
        #expect(outcomes.compactMap(\.mismatch).isEmpty)
    }

    private func isNoticed(
        focus: OperationGenerator.Kind? = nil,
        fault: (inout ModelCheck.Setup) -> Void
    ) async throws -> Bool {
        let scenarios = Self.scenarios(64, operations: 40, focus: focus) { setup in
            fault(&setup)
            // A short timeout, because this check expects a wrong status.
            setup.timeout = .seconds(2)
        }
        let outcomes = try await ModelCheck.run(scenarios) { $0.mismatch != nil }
        return outcomes.contains { $0.mismatch != nil }
    }

    private static func scenarios(
        _ count: Int,
        operations: Int,
        focus: OperationGenerator.Kind? = nil,
        fault: (inout ModelCheck.Setup) -> Void
    ) -> [Scenario] {
        (0..<count).map { _ in
            let seed = UInt64.random(in: 0 ... .max)
            var setup = ModelCheck.Setup(seed: seed)
            fault(&setup)
            return Scenario(seed: seed, operations: operations, setup: setup, focus: focus)
        }
    }
}

/// The number of scenarios and operations to check, according to environment variables.
struct Plan {
    private let seeds: [UInt64]
    private let operations: Int
    private let isReplay: Bool

    /// Reads the plan from the environment:
    ///
    /// - `NETWATCH_SEED` replays the scenario of one seed. If it fails, the operations are reduced to those that are
    ///   needed for the failure.
    /// - `NETWATCH_CHECKS` selects 10, 100 or 2,000 seeds; see ``CheckSize``.
    /// - `NETWATCH_MODEL_SEEDS` sets another number of seeds.
    /// - `NETWATCH_MODEL_OPERATIONS` sets the number of operations per scenario. Default: 40.
    init(environment: [String: String]) {
        func number(_ name: String) -> Int? { environment[name].flatMap { Int($0) } }
        operations = number("NETWATCH_MODEL_OPERATIONS") ?? 40
        let seed = environment["NETWATCH_SEED"].flatMap { UInt64($0) }
        isReplay = seed != nil
        let count = number("NETWATCH_MODEL_SEEDS") ?? CheckSize.choose(small: 10, medium: 100, full: 2000)
        seeds = seed.map { [$0] } ?? (0..<count).map { _ in UInt64.random(in: 0 ... .max) }
    }

    func run() async throws -> [ModelCheckRun.Outcome] {
        let scenarios = seeds.map {
            Scenario(seed: $0, operations: operations, setup: ModelCheck.Setup(seed: $0))
        }
        return isReplay ? [replay(scenarios[0])] : try await ModelCheck.run(scenarios)
    }

    private func replay(_ scenario: Scenario) -> ModelCheckRun.Outcome {
        let outcome = ModelCheckRun.outcome(of: scenario) { print($0) }
        guard let mismatch = outcome.mismatch else { return outcome }
        var scenario = scenario
        scenario.operations = mismatch.operations
        print("needed operations:\n\(scenario.shrunk().operations.map { "  \($0)" }.joined(separator: "\n"))")
        return outcome
    }
}

/// A summary of a check in a few lines.
struct ModelCheckReport: CustomStringConvertible {
    let description: String
    /// Whether the correct statuses changed more than once per ten commands. Three to four times are usual.
    let changesMuch: Bool

    init(_ outcomes: [ModelCheckRun.Outcome]) {
        let commands = outcomes.map(\.commands).reduce(0, +)
        let refused = outcomes.map(\.refusals.count).reduce(0, +)
        let changes = outcomes.map(\.changes).reduce(0, +)
        let overruns = outcomes.map(\.overruns).reduce(0, +)
        let delays = outcomes.flatMap(\.delays).sorted()
        let quantiles = [50, 90, 99, 100].map { "\(Self.quantile($0, of: delays)) (\($0) %)" }
        changesMuch = changes > commands / 10
        description = """
            model check: \(outcomes.count) seeds, \(commands) commands of which the kernel refused \(refused), \
            \(changes) changes of a status, \(overruns) overruns; all statuses correct again after \
            \(quantiles.joined(separator: ", ")) ms
            """
    }

    private static func quantile(_ percent: Int, of sorted: [Duration]) -> Int64 {
        guard !sorted.isEmpty else { return 0 }
        return Int64(sorted[(sorted.count - 1) * percent / 100] / .milliseconds(1))
    }
}

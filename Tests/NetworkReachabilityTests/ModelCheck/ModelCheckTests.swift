internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@Suite(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
struct ModelCheckTests {
    @Test func `random changes, and every status is what the kernel says`() async throws {
        let plan = Plan(environment: ProcessInfo.processInfo.environment)
        let outcomes = try await plan.run()
        for outcome in outcomes {
            guard let mismatch = outcome.mismatch else { continue }
            Issue.record("replay with NETWATCH_SEED=\(outcome.scenario.seed)\n\(mismatch)")
        }
        let report = ModelCheckReport(outcomes)
        print(report)
        #expect(report.changesMuch, "a check of a network that does not change shows nothing")
    }
}

/// How much is checked: little by default, otherwise all that the environment asks for.
struct Plan {
    private let seeds: [UInt64]
    private let operations: Int
    private let isReplay: Bool

    /// `NETWATCH_SEED` replays one seed, and then leaves out what is not needed to fail;
    /// `NETWATCH_SOAK=1` asks for 2,000 seeds instead of 100; `NETWATCH_MODEL_SEEDS` and
    /// `NETWATCH_MODEL_OPERATIONS` (40) for other numbers.
    init(environment: [String: String]) {
        func number(_ name: String) -> Int? { environment[name].flatMap { Int($0) } }
        operations = number("NETWATCH_MODEL_OPERATIONS") ?? 40
        let seed = environment["NETWATCH_SEED"].flatMap { UInt64($0) }
        isReplay = seed != nil
        let count = number("NETWATCH_MODEL_SEEDS") ?? (environment["NETWATCH_SOAK"] == "1" ? 2000 : 100)
        seeds = seed.map { [$0] } ?? (0..<count).map { _ in UInt64.random(in: 0 ... .max) }
    }

    func run() async throws -> [ModelRun.Outcome] {
        let scenarios = seeds.map {
            Scenario(seed: $0, operations: operations, setup: ModelCheck.Setup(seed: $0))
        }
        return isReplay ? [replay(scenarios[0])] : try await ModelCheck.run(scenarios)
    }

    private func replay(_ scenario: Scenario) -> ModelRun.Outcome {
        let outcome = ModelRun.outcome(of: scenario) { print($0) }
        guard let mismatch = outcome.mismatch else { return outcome }
        var scenario = scenario
        scenario.operations = mismatch.operations
        print("with less:\n\(scenario.shrunk().operations.map { "  \($0)" }.joined(separator: "\n"))")
        return outcome
    }
}

/// What a check did, in a few lines.
struct ModelCheckReport: CustomStringConvertible {
    let description: String
    /// Whether the truth changed once for ten commands; three times are usual.
    let changesMuch: Bool

    init(_ outcomes: [ModelRun.Outcome]) {
        let commands = outcomes.map(\.commands).reduce(0, +)
        let refused = outcomes.map(\.refusals.count).reduce(0, +)
        let changes = outcomes.map(\.changes).reduce(0, +)
        let overruns = outcomes.map(\.overruns).reduce(0, +)
        let delays = outcomes.flatMap(\.delays).sorted()
        let quantiles = [50, 90, 99, 100].map { "\(Self.quantile($0, of: delays)) (\($0) %)" }
        changesMuch = changes > commands / 10
        description = """
            model check: \(outcomes.count) seeds, \(commands) commands of which the kernel refused \(refused), \
            \(changes) changes of a status, \(overruns) overruns; true again after \
            \(quantiles.joined(separator: ", ")) ms
            """
    }

    private static func quantile(_ percent: Int, of sorted: [Duration]) -> Int64 {
        guard !sorted.isEmpty else { return 0 }
        return Int64(sorted[(sorted.count - 1) * percent / 100] / .milliseconds(1))
    }
}

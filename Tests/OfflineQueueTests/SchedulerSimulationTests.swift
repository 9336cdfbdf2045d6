internal import Foundation
internal import Testing

@Suite struct SchedulerSimulationTests {
    /// `NETWATCH_SEED` replays one seed.
    private static let seeds: [UInt64] = {
        if let text = ProcessInfo.processInfo.environment["NETWATCH_SEED"], let seed = UInt64(text) {
            return [seed]
        }
        return (0..<40).map { _ in UInt64.random(in: 0 ... .max) }
    }()

    @Test func `random hours break no promise`() {
        for seed in Self.seeds {
            var simulation = SchedulerSimulation(seed: seed, sabotage: nil)
            let violations = simulation.run()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }

    @Test(arguments: SchedulerSimulation.Sabotage.allCases)
    func `the checks notice a scheduler that is broken`(sabotage: SchedulerSimulation.Sabotage) {
        let noticed = Self.seeds.contains { seed in
            var simulation = SchedulerSimulation(seed: seed, sabotage: sabotage)
            return !simulation.run().isEmpty
        }
        #expect(noticed)
    }
}

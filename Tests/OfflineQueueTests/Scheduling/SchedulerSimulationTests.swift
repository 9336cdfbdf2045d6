internal import Foundation
internal import Testing

/// `NETWATCH_SEED` replays one seed.
private func randomSeeds(_ count: Int) -> [UInt64] {
    if let text = ProcessInfo.processInfo.environment["NETWATCH_SEED"], let seed = UInt64(text) {
        return [seed]
    }
    return (0..<count).map { _ in UInt64.random(in: 0 ... .max) }
}

@Suite struct SchedulerSimulationTests {
    private static let seeds = randomSeeds(40)

    @Test func `random simulated hours violate no guarantee`() {
        for seed in Self.seeds {
            var simulation = SchedulerSimulation(seed: seed, sabotage: nil)
            let violations = simulation.run()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }

    @Test(arguments: SchedulerSimulation.Sabotage.allCases)
    func `the checks detect a faulty scheduler`(sabotage: SchedulerSimulation.Sabotage) {
        let noticed = Self.seeds.contains { seed in
            var simulation = SchedulerSimulation(seed: seed, sabotage: sabotage)
            return !simulation.run().isEmpty
        }
        #expect(noticed)
    }
}

@Suite struct FairnessSimulationTests {
    private static let seeds = randomSeeds(10)

    @Test func `the first attempt to an origin starts within a second despite slow origins`() {
        for seed in Self.seeds {
            var simulation = FairnessSimulation(seed: seed, sabotage: nil)
            let violations = simulation.run()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }

    @Test(arguments: FairnessSimulation.Sabotage.allCases)
    func `the checks detect an unfair scheduler`(sabotage: FairnessSimulation.Sabotage) {
        let noticed = Self.seeds.contains { seed in
            var simulation = FairnessSimulation(seed: seed, sabotage: sabotage)
            return !simulation.run().isEmpty
        }
        #expect(noticed)
    }
}

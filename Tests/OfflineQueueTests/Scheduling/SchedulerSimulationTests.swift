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
            var simulation = SchedulerSimulation(seed: seed, fault: nil)
            let violations = simulation.run()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }

    @Test(arguments: SchedulerSimulation.InjectedFault.allCases)
    func `the checks detect a faulty scheduler`(fault: SchedulerSimulation.InjectedFault) {
        let noticed = Self.seeds.contains { seed in
            var simulation = SchedulerSimulation(seed: seed, fault: fault)
            return !simulation.run().isEmpty
        }
        #expect(noticed)
    }
}

@Suite struct FairnessSimulationTests {
    private static let seeds = randomSeeds(10)

    @Test func `the first attempt to an origin starts within a second despite slow origins`() {
        for seed in Self.seeds {
            var simulation = FairnessSimulation(seed: seed, fault: nil)
            let violations = simulation.run()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }

    @Test(arguments: FairnessSimulation.InjectedFault.allCases)
    func `the checks detect an unfair scheduler`(fault: FairnessSimulation.InjectedFault) {
        let noticed = Self.seeds.contains { seed in
            var simulation = FairnessSimulation(seed: seed, fault: fault)
            return !simulation.run().isEmpty
        }
        #expect(noticed)
    }
}

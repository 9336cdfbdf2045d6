internal import Foundation
internal import Testing

@Suite struct ValidationSimulationTests {
    /// The seeds of the simulations. The environment variable `NETWATCH_SEED` replays a single one.
    private static let seeds: [UInt64] = {
        if let text = ProcessInfo.processInfo.environment["NETWATCH_SEED"], let seed = UInt64(text) {
            return [seed]
        }
        return (0..<200).map { _ in UInt64.random(in: 0 ... .max) }
    }()

    @Test func `no order of statuses, checks and results violates an invariant`() {
        for seed in Self.seeds {
            var simulation = ValidationSimulation(seed: seed, fault: nil)
            let violations = simulation.run()
            #expect(violations.isEmpty, "replay with NETWATCH_SEED=\(seed)")
        }
    }

    @Test(arguments: ValidationSimulation.Fault.allCases)
    func `the invariants detect each injected fault`(fault: ValidationSimulation.Fault) {
        // The seeds are fixed, because random ones may all miss a fault that shows rarely.
        let noticed = (1...1000 as ClosedRange<UInt64>).contains { seed in
            var simulation = ValidationSimulation(seed: seed, fault: fault)
            return !simulation.run().isEmpty
        }
        #expect(noticed)
    }
}

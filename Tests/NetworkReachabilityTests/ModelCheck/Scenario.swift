internal import NetwatchTestSupport

/// The inputs of a run. They determine all of the run except its timing.
struct Scenario: Sendable {
    /// The watched hosts: addresses of this machine, neighbours, hosts behind gateways, and link-local addresses.
    static let hosts = [
        "127.0.0.1", "192.0.2.1", "192.0.2.2", "203.0.113.2", "198.51.100.7", "198.51.100.200", "::1",
        "2001:db8:0::1", "2001:db8:0::2", "2001:db8:1::2", "2001:db8:ffff::7", "2001:db8:ffff:1::9",
        "fe80::2%100", "169.254.9.9",
    ]

    let seed: UInt64
    let cables: Int
    var setup: ModelCheck.Setup
    var operations: [Operation]
    /// The generator of the random lengths of bursts, in which operations follow each other without a pause.
    let pauses: SeededGenerator

    /// Creates a random scenario.
    ///
    /// - Parameters:
    ///   - count: The number of operations.
    ///   - focus: A kind of operation that is generated more often than others. Default: `nil`, none.
    init(seed: UInt64, operations count: Int, setup: ModelCheck.Setup, focus: OperationGenerator.Kind? = nil)
    {
        self.seed = seed
        self.setup = setup
        var random = SeededGenerator(seed: seed)
        cables = Int.random(in: 2...4, using: &random)
        var generator = OperationGenerator(
            seed: random.next(),
            cables: cables,
            hasRouter: setup.hasRouter,
            focus: focus
        )
        operations = generator.operations(count)
        pauses = random
    }

    /// Returns this scenario without the operations that are not needed for its mismatch. Tries to leave out large
    /// parts first, then smaller ones.
    func shrunk() -> Scenario {
        var scenario = self
        // A short timeout is enough, because only one scenario runs at a time now.
        scenario.setup.timeout = .seconds(2)
        var length = operations.count / 2
        while length >= 1 {
            var start = 0
            while start < scenario.operations.count {
                var shorter = scenario
                let end = min(start + length, scenario.operations.count)
                shorter.operations.removeSubrange(start..<end)
                if ModelCheckRun.outcome(of: shorter).mismatch != nil {
                    scenario = shorter
                } else {
                    start += length
                }
            }
            length /= 2
        }
        return scenario
    }
}

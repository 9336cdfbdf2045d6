internal import NetwatchTestSupport

/// Everything that decides what happens in a run, but for the moments at which it happens.
struct Scenario: Sendable {
    /// What is watched: own addresses, neighbours, hosts behind gateways, and one that only its link tells
    /// apart.
    static let hosts = [
        "127.0.0.1", "192.0.2.1", "192.0.2.2", "203.0.113.2", "198.51.100.7", "198.51.100.200", "::1",
        "2001:db8:0::1", "2001:db8:0::2", "2001:db8:1::2", "2001:db8:ffff::7", "2001:db8:ffff:1::9",
        "fe80::2%100",
    ]

    let seed: UInt64
    let cables: Int
    var setup: ModelCheck.Setup
    var operations: [Operation]
    /// Decides which operations follow each other without a pause.
    let pauses: SeededGenerator

    /// Makes up a scenario.
    ///
    /// - Parameters:
    ///   - focus: A kind of operation that is to come more often than others.
    init(seed: UInt64, operations count: Int, setup: ModelCheck.Setup, focus: OperationGenerator.Kind? = nil)
    {
        self.seed = seed
        self.setup = setup
        var random = SeededGenerator(seed: seed)
        cables = Int.random(in: 2...4, using: &random)
        var generator = OperationGenerator(seed: random.next(), cables: cables, focus: focus)
        operations = generator.operations(count)
        pauses = random
    }

    /// Leaves out what is not needed for statuses that stay wrong: halves first, then less and less.
    func shrunk() -> Scenario {
        var scenario = self
        // Nothing else keeps the machine busy now.
        scenario.setup.patience = .seconds(2)
        var length = operations.count / 2
        while length >= 1 {
            var start = 0
            while start < scenario.operations.count {
                var shorter = scenario
                let end = min(start + length, scenario.operations.count)
                shorter.operations.removeSubrange(start..<end)
                if ModelRun.outcome(of: shorter).mismatch != nil {
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

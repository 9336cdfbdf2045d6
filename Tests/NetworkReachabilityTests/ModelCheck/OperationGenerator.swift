internal import NetwatchTestSupport

/// Makes up changes to a network, the same ones for the same seed.
///
/// It does not know what the kernel makes of them; some are refused, which changes nothing.
struct OperationGenerator {
    typealias Cable = ModelTestbed.Cable
    typealias Step = Operation.Step

    var random: SeededGenerator
    let cables: [Cable]
    /// What takes back something done earlier. Without it everything would be blackholed in the end.
    private var remedies: [Operation] = []
    /// What belongs together, and comes next.
    private var upcoming: [Operation] = []

    /// What an operation is about.
    enum Kind: CaseIterable, Sendable {
        case link, address, route, rule, nextHop, parameter, watch, repair
    }

    /// Kinds in proportion to how often they come.
    private let kinds: [Kind]

    /// - Parameter focus: A kind that is to come as often as all others together.
    init(seed: UInt64, cables: Int, focus: Kind? = nil) {
        random = SeededGenerator(seed: seed)
        let shares: [(Kind, Int)] = [
            (.link, 24), (.address, 18), (.route, 20), (.rule, 8), (.nextHop, 9), (.parameter, 7),
            (.repair, 14),
        ]
        let usual = shares.flatMap { Array(repeating: $0.0, count: $0.1) }
        kinds = usual + (focus.map { Array(repeating: $0, count: usual.count) } ?? [])
        self.cables = (0..<cables).map(Cable.init)
    }

    mutating func operations(_ count: Int) -> [Operation] {
        (0..<count).map { _ in next() }
    }

    private mutating func next() -> Operation {
        if !upcoming.isEmpty, isLikely(80) { return upcoming.removeFirst() }
        if isLikely(35), let index = remedies.indices.randomElement(using: &random) {
            return remedies.remove(at: index)
        }
        return switch one(kinds) {
        case .link: linkOperation()
        case .address: addressOperation()
        case .route: routeOperation()
        case .rule: ruleOperation()
        case .nextHop: nextHopOperation()
        case .parameter: parameterOperation()
        case .watch: watchOperation()
        case .repair: repair()
        }
    }

    // MARK: Choices

    mutating func number(below limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    mutating func isLikely(_ percent: Int) -> Bool { number(below: 100) < percent }

    mutating func one<Element>(_ elements: [Element]) -> Element { elements.randomElement(using: &random)! }

    /// The first cable, over which most routes lead, half of the time.
    mutating func cable() -> Cable { isLikely(50) ? cables[0] : one(cables) }

    /// An operation that is taken back some time later.
    mutating func temporarily(_ operation: Operation, remedy: Operation) -> Operation {
        later(remedy)
        return operation
    }

    /// Some time later, with others in between now and then.
    mutating func later(_ remedy: Operation) { remedies.append(remedy) }

    /// One after the other, each an operation of its own: kinds of change that have an effect only after
    /// others, and are announced by themselves.
    mutating func inTurn(_ first: Operation, _ others: Operation...) -> Operation {
        upcoming += others
        return first
    }

    private mutating func watchOperation() -> Operation {
        let host = one(Scenario.hosts)
        return temporarily(Operation(.unwatch(host)), remedy: Operation(.watch(host)))
    }

    /// Brings a cable to its first state, but for what refuses its routes.
    private mutating func repair() -> Operation {
        let cable = cable()
        let link: [Step] = [
            .far("link set \(cable.far) up"),
            .near("link set \(cable.near) nomaster"),
            .near("link set \(cable.near) mtu 1500"),
            .near("link set \(cable.near) up"),
            .near("addr replace \(cable.nearIPv4)/24 dev \(cable.near)"),
            .near("addr replace \(cable.nearIPv6)/64 dev \(cable.near) nodad"),
            .near("addr replace fe80::1/64 dev \(cable.near) nodad"),
        ]
        return Operation(link + ModelTestbed.defaultRoutes(over: cable).steps)
    }
}

internal import NetwatchTestSupport

/// A generator of random changes to a network. The same seed generates the same changes.
///
/// The generator does not know the effect of a change. The kernel refuses some of them, which then change nothing.
struct OperationGenerator {
    typealias Cable = ModelTestbed.Cable
    typealias Step = Operation.Step

    var random: SeededGenerator
    let cables: [Cable]
    /// The operations that undo earlier ones. Without them, blackhole routes would eventually cover all hosts.
    private var remedies: [Operation] = []
    /// The operations that must follow an earlier one in order, as ``inTurn(_:_:)`` has scheduled them.
    private var upcoming: [Operation] = []

    /// The kind of thing that an operation changes.
    enum Kind: CaseIterable, Sendable {
        case link, address, route, rule, nextHop, parameter, watch, router, repair
    }

    /// The kinds from which one is drawn at random. Each is repeated in proportion to its frequency.
    private let kinds: [Kind]

    /// Whether there are router advertisements and routes with a lifetime.
    let hasRouter: Bool

    /// - Parameter focus: A kind that is generated at least as often as all others together. Default: `nil`, none.
    init(seed: UInt64, cables: Int, hasRouter: Bool, focus: Kind? = nil) {
        self.hasRouter = hasRouter
        random = SeededGenerator(seed: seed)
        let shares: [(Kind, Int)] = [
            (.link, 24), (.address, 18), (.route, 20), (.rule, 8), (.nextHop, 9), (.parameter, 7),
            (.repair, 14), (.router, hasRouter ? 20 : 0),
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
        case .router: routerOperation()
        case .repair: repair()
        }
    }

    // MARK: Choices

    mutating func number(below limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    mutating func isLikely(_ percent: Int) -> Bool { number(below: 100) < percent }

    mutating func one<Element>(_ elements: [Element]) -> Element { elements.randomElement(using: &random)! }

    /// Returns the first cable in half of the cases, because most routes use it; otherwise a random one.
    mutating func cable() -> Cable { isLikely(50) ? cables[0] : one(cables) }

    /// Returns an operation, and schedules another one that undoes it later.
    mutating func temporarily(_ operation: Operation, remedy: Operation) -> Operation {
        later(remedy)
        return operation
    }

    /// Schedules a remedy for a random later time.
    mutating func later(_ remedy: Operation) { remedies.append(remedy) }

    /// Returns the first operation, and schedules the others to follow soon in this order.
    ///
    /// For changes that only have an effect after the previous one. The kernel sends separate notifications of them.
    mutating func inTurn(_ first: Operation, _ others: Operation...) -> Operation {
        upcoming += others
        return first
    }

    private mutating func watchOperation() -> Operation {
        let host = one(Scenario.hosts)
        return temporarily(Operation(.unwatch(host)), remedy: Operation(.watch(host)))
    }

    /// Restores the initial state of a cable. Routes and rules that reject its traffic stay.
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

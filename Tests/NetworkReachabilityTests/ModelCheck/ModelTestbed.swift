internal import NetwatchTestSupport

/// Two namespaces with two to four cables between them: `near`, which the monitor watches, and `far`.
final class ModelTestbed {
    /// A veth pair with an IPv4 and an IPv6 network. The scenario watches hosts in the networks of the first two
    /// cables. Only routes use the other cables.
    struct Cable: Sendable {
        let number: Int

        var near: String { "n\(number)" }
        var far: String { "f\(number)" }
        /// The interface index of the near end. It is set explicitly, because the zone of a watched address is this
        /// index.
        var index: Int { 100 + number }
        var ipv4Network: String { ["192.0.2", "203.0.113", "198.18.0", "198.18.1"][number] }
        var ipv6Network: String { "2001:db8:\(number)" }
        var nearIPv4: String { "\(ipv4Network).1" }
        var farIPv4: String { "\(ipv4Network).2" }
        var nearIPv6: String { "\(ipv6Network)::1" }
        var secondIPv6: String { "\(ipv6Network)::5" }
        var farIPv6: String { "\(ipv6Network)::2" }
    }

    let near: NetworkNamespace
    private let far: NetworkNamespace
    private let nearIP: IPBatch
    private let nearIPv6: IPBatch
    private let farIP: IPBatch
    /// The number of commands so far.
    private(set) var commands = 0
    /// The commands that the kernel refused, each with the error message.
    private(set) var refusals: [String] = []

    /// - Parameters:
    ///   - cables: The number of cables.
    ///   - hasRouter: Whether the near namespace accepts router advertisements.
    init(cables: Int, hasRouter: Bool) throws {
        near = try NetworkNamespace(hasLoopback: false)
        far = try NetworkNamespace(hasLoopback: false)
        nearIP = IPBatch(in: near)
        nearIPv6 = IPBatch(in: near, options: "-6")
        farIP = IPBatch(in: far)
        perform(Operation(.near("link set lo up"), .far("link set lo up")))
        if hasRouter { perform(Self.acceptingAdvertisements) }
        for number in 0..<cables { perform(Self.laying(Cable(number: number), farNamespace: far.path)) }
        perform(Self.defaultRoutes(over: Cable(number: 0)))
    }

    /// Makes interfaces that are created later accept all routes of router advertisements, but no addresses, because
    /// their delayed notifications would make the monitor correct wrong statuses.
    private static let acceptingAdvertisements = Operation(
        [("accept_ra", "2"), ("accept_ra_rt_info_max_plen", "128"), ("autoconf", "0")].map {
            .parameter("net/ipv6/conf/default/\($0)", $1)
        }
    )

    /// Returns the operation that creates a cable. `FAR` in its commands stands for the path of the far namespace.
    static func laying(_ cable: Cable, index: Int? = nil, farNamespace: String = "FAR") -> Operation {
        let link = "link add \(cable.near) index \(index ?? cable.index) type veth"
        return Operation(
            [
                .near("\(link) peer name \(cable.far) netns \(farNamespace)"),
                // No link-local addresses, because their delayed notifications would make the monitor correct wrong
                // statuses.
                .near("link set \(cable.near) addrgenmode none"),
                .far("link set \(cable.far) addrgenmode none"),
                .far("addr add \(cable.farIPv4)/24 dev \(cable.far)"),
                .far("addr add \(cable.farIPv6)/64 dev \(cable.far) nodad"),
                .far("addr add fe80::2/64 dev \(cable.far) nodad"),
                .far("link set \(cable.far) up"),
            ] + addressing(cable)
        )
    }

    private static func addressing(_ cable: Cable) -> [Operation.Step] {
        [
            .near("addr add \(cable.nearIPv4)/24 dev \(cable.near)"),
            .near("addr add \(cable.nearIPv6)/64 dev \(cable.near) nodad"),
            .near("addr add \(cable.secondIPv6)/64 dev \(cable.near) nodad"),
            .near("addr add fe80::1/64 dev \(cable.near) nodad"),
            .near("link set \(cable.near) up"),
        ]
    }

    static func defaultRoutes(over cable: Cable) -> Operation {
        Operation(
            .near("route replace default via \(cable.farIPv4) dev \(cable.near)"),
            .near("route replace ::/0 via \(cable.farIPv6) dev \(cable.near)")
        )
    }

    func perform(_ operation: Operation) {
        for step in operation.steps {
            commands += 1
            if let complaint = perform(step) { refusals.append("\(step): \(complaint)") }
        }
    }

    private func perform(_ step: Operation.Step) -> String? {
        do {
            switch step {
            case .near(let command): return try nearIP.perform(command.replacing("FAR", with: far.path))
            case .nearIPv6(let command): return try nearIPv6.perform(command)
            case .far(let command): return try farIP.perform(command)
            case .unwatch, .watch: break
            case .parameter(let name, let value): try near.setParameter(name, to: value)
            case .advertise(let advertisement, let interface):
                try advertisement.send(from: "fe80::2", on: interface, in: far)
            }
        } catch {
            return "\(error)"
        }
        return nil
    }
}

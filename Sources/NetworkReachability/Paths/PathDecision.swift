internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Decides whether one address can be reached, from what the kernel answered. Pure: no call is made here.
struct PathDecision {
    let query: RouteQuery
    let answer: RouteAnswer
    let interfaces: InterfaceTable

    private var destination: IPAddress { query.destination }

    var verdict: PathStatus.Verdict {
        // IPv6 ignores a source that no interface has, and IPv4 calls it a missing route.
        if let source = query.source, !canSend(from: source) { return .notReachable(.noSource) }
        switch answer.lookup {
        case .refused(let errno, let message): return Self.refusal(errno: errno, message: message)
        case .route(let route): return verdict(on: route)
        }
    }

    private func canSend(from source: IPAddress) -> Bool {
        source.family == destination.family && interfaces.isUsable(source: source, on: nil) == true
    }

    private static func refusal(errno: CInt, message: String?) -> PathStatus.Verdict {
        switch errno {
        // The second: a kernel booted without IPv6 does not know the family.
        case ENETUNREACH, EOPNOTSUPP: .notReachable(.noRoute)
        case EHOSTUNREACH: .notReachable(.unreachable)
        case EACCES: .notReachable(.prohibited)
        // The same number stands for a malformed request, but then the kernel says what is wrong with it.
        case EINVAL where message == nil: .notReachable(.blackhole)
        default: .unknown(.lookupFailed)
        }
    }

    private func verdict(on route: Route) -> PathStatus.Verdict {
        // What this machine sends to itself goes by the loopback interface, even to the address of another one.
        // While that is down, the kernel takes its addresses for others to be found over the default route.
        if interfaces.isLoopbackDown, route.kind == .local || destination.isLoopback {
            return .notReachable(.loopbackDown)
        }
        return switch route.kind {
        case .local: .reachable(path(route, isLocal: true))
        case .unicast: unicastVerdict(on: route)
        case .group: .notReachable(.notUnicast)
        case .other: .unknown(.lookupFailed)
        }
    }

    private func unicastVerdict(on route: Route) -> PathStatus.Verdict {
        // Told to use an interface, an IPv4 lookup takes any address for a neighbour on it when there is no
        // route; only the table knows.
        if query.outputInterface != 0, case .refused = answer.tableMatch { return .notReachable(.noRoute) }
        guard let interface = route.outputInterface, hasCarrier(interface) else {
            return .notReachable(.noCarrier)
        }
        guard hasUsableSource(route) else { return .notReachable(.noSource) }
        return .reachable(path(route, isLocal: false))
    }

    /// An interface that is not in the table is gone, or so new that its own event is still to come.
    private func hasCarrier(_ interface: UInt32) -> Bool {
        guard interfaces.links[interface]?.hasCarrier == true else { return false }
        if case .route(let match) = answer.tableMatch { return !match.isDown }
        return true
    }

    /// The kernel routes by a source it cannot use: a link-local one towards a global destination, or one
    /// that duplicate address detection has not passed; and for IPv4 by none at all.
    private func hasUsableSource(_ route: Route) -> Bool {
        guard let source = query.source ?? route.source else { return false }
        if destination.family == .ipv4 { return true }
        if source.isLinkLocal, !destination.isLinkLocal { return false }
        // Not in the table means changed since it was read; that change has its own event.
        return interfaces.isUsable(source: source, on: route.outputInterface) ?? true
    }

    private func path(_ route: Route, isLocal: Bool) -> NetworkPath {
        NetworkPath(
            destination: destination,
            interface: route.outputInterface.flatMap { interfaces.descriptions[$0] },
            gateway: route.gateway,
            source: query.source ?? route.source,
            isLocal: isLocal,
            prefixLength: tableRoute?.prefixLength ?? route.prefixLength,
            table: tableRoute?.table ?? route.table
        )
    }

    private var tableRoute: Route? {
        if case .route(let match) = answer.tableMatch { match } else { nil }
    }
}

extension PathDecision {
    /// What was decided, and what it rests on.
    var judgement: Judgement {
        var judgement = Judgement(verdict)
        judgement.lifetime = tableRoute?.lifetime
        if case .route(let route) = answer.lookup { judgement.interface = route.outputInterface ?? 0 }
        judgement.isMultipath = tableRoute?.nextHops.isEmpty == false
        return judgement
    }
}

/// The verdict on one address, and what could make it another.
struct Judgement: Hashable, Sendable {
    let verdict: PathStatus.Verdict
    /// For how long it is valid without any event; `nil` when for ever.
    var lifetime: Duration?
    /// The interface that the way leads over, with carrier or without; 0 when there is none.
    var interface: UInt32 = 0
    /// Whether other interfaces could take over.
    var isMultipath = false

    init(_ verdict: PathStatus.Verdict) {
        self.verdict = verdict
    }

    static let noNetlink = Judgement(.unknown(.noNetlink))
}

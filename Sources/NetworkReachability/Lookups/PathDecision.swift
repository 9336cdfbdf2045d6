internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Decides whether one address is reachable from the kernel's answer. Pure: makes no system calls.
struct PathDecision {
    let query: RouteQuery
    let answer: RouteAnswer
    let interfaces: InterfaceTable

    private var destination: IPAddress { query.destination }

    var verdict: PathStatus.Verdict {
        // IPv6 ignores a source address that no interface has, and IPv4 reports a missing route for it.
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
        // EOPNOTSUPP: a kernel booted without IPv6 does not know the family.
        case ENETUNREACH, EOPNOTSUPP: .notReachable(.noRoute)
        case EHOSTUNREACH: .notReachable(.unreachable)
        case EACCES: .notReachable(.prohibited)
        // EINVAL also means a malformed request, but then the kernel adds a message.
        case EINVAL where message == nil: .notReachable(.blackhole)
        default: .unknown(.lookupFailed)
        }
    }

    private func verdict(on route: Route) -> PathStatus.Verdict {
        // Packets to this machine itself use the loopback interface, even to the address of another interface. While
        // loopback is down, the kernel looks for its addresses behind the default route.
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
        // With a required interface and no route, an IPv4 lookup treats any address as a neighbour on that interface.
        // Only the table match shows that there is no route.
        if query.outputInterface != 0, case .refused = answer.tableMatch { return .notReachable(.noRoute) }
        guard let interface = route.outputInterface, hasCarrier(interface) else {
            return .notReachable(.noCarrier)
        }
        guard hasUsableSource(route) else { return .notReachable(.noSource) }
        return .reachable(path(route, isLocal: false))
    }

    /// An interface that is missing from the table was removed, or is so new that its own event has not arrived yet.
    private func hasCarrier(_ interface: UInt32) -> Bool {
        guard interfaces.links[interface]?.hasCarrier == true else { return false }
        if case .route(let match) = answer.tableMatch { return !match.isDown }
        return true
    }

    /// Whether the route has a source address that can be used. The kernel also returns routes with a link-local
    /// source for a global destination, with a source that has not passed duplicate address detection, and for IPv4
    /// without any source.
    private func hasUsableSource(_ route: Route) -> Bool {
        guard let source = query.source ?? route.source else { return false }
        if destination.family == .ipv4 { return true }
        if source.isLinkLocal, !destination.isLinkLocal { return false }
        // An address that is not in the table has changed since the table was read. That change has its own event.
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
    /// The verdict and what it depends on.
    var addressVerdict: AddressVerdict {
        var addressVerdict = AddressVerdict(verdict)
        addressVerdict.lifetime = tableRoute?.lifetime
        if case .route(let route) = answer.lookup { addressVerdict.interface = route.outputInterface ?? 0 }
        addressVerdict.isMultipath = tableRoute?.nextHops.isEmpty == false
        return addressVerdict
    }
}

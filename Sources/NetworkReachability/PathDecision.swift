internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The interfaces and their addresses at one moment.
struct InterfaceTable: Hashable, Sendable {
    var links: [UInt32: Link] = [:]
    var addresses: [InterfaceAddress] = []

    /// The addresses that a name server elsewhere could be asked from. Links that come and go without one,
    /// like those of containers, change nothing.
    var waysOut: Set<InterfaceAddress> {
        let usable = addresses.filter { address in
            guard let link = links[address.interface], !link.isLoopback, link.hasCarrier else { return false }
            return address.isUsable && !address.address.isLinkLocal
        }
        return Set(usable)
    }
}

/// Decides whether one address can be reached, from what the kernel answered. Pure: no call is made here.
struct PathDecision {
    let destination: IPAddress
    /// The plain lookup: the way a packet would take.
    let lookup: RouteLookup
    /// The lookup with `RTM_F_FIB_MATCH`: the only one that shows a lost carrier.
    let tableMatch: RouteLookup
    let interfaces: InterfaceTable

    var verdict: PathStatus.Verdict {
        switch lookup {
        case .refused(let errno, let message): Self.refusal(errno: errno, message: message)
        case .route(let route): verdict(on: route)
        }
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
        switch route.kind {
        case .local: .reachable(path(route, isLocal: true))
        case .unicast: unicastVerdict(on: route)
        case .group: .notReachable(.notUnicast)
        case .other: .unknown(.lookupFailed)
        }
    }

    private func unicastVerdict(on route: Route) -> PathStatus.Verdict {
        guard let interface = route.outputInterface, hasCarrier(interface) else {
            return .notReachable(.noCarrier)
        }
        guard hasUsableSource(route) else { return .notReachable(.noSource) }
        return .reachable(path(route, isLocal: false))
    }

    /// An interface that is not in the table is gone, or so new that its own event is still to come.
    private func hasCarrier(_ interface: UInt32) -> Bool {
        guard interfaces.links[interface]?.hasCarrier == true else { return false }
        if case .route(let match) = tableMatch { return !match.isDown }
        return true
    }

    /// The kernel routes by a source it cannot use: a link-local one towards a global destination, or one
    /// that duplicate address detection has not passed; and for IPv4 by none at all.
    private func hasUsableSource(_ route: Route) -> Bool {
        guard let source = route.source else { return false }
        if destination.family == .ipv4 { return true }
        if source.isLinkLocal, !destination.isLinkLocal { return false }
        // The same link-local address may stand on several links.
        let holders = interfaces.addresses.filter { $0.address.bytes == source.bytes }
        let holder = holders.first { $0.interface == route.outputInterface } ?? holders.first
        // Not in the table means changed since it was read; that change has its own event.
        return holder?.isUsable ?? true
    }

    private func path(_ route: Route, isLocal: Bool) -> NetworkPath {
        let index = route.outputInterface ?? 0
        return NetworkPath(
            destination: destination,
            interfaceIndex: index,
            interfaceName: interfaces.links[index]?.name ?? "",
            gateway: route.gateway,
            source: route.source,
            isLocal: isLocal
        )
    }
}

extension PathDecision {
    /// For how long the answers are valid without any event; `nil` when for ever.
    var lifetime: Duration? {
        if case .route(let match) = tableMatch { match.lifetime } else { nil }
    }
}

extension PathStatus.Verdict {
    /// The verdict on a host with several addresses: reachable by the first that is, in the resolver's
    /// order (RFC 6724); otherwise unknown if any is; otherwise what is wrong with the first.
    static func combined(_ verdicts: [PathStatus.Verdict]) -> PathStatus.Verdict? {
        verdicts.first { if case .reachable = $0 { true } else { false } }
            ?? verdicts.first { if case .unknown = $0 { true } else { false } }
            ?? verdicts.first
    }
}

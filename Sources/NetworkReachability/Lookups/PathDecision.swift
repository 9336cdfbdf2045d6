internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Decides from the kernel's answers whether one address is reachable. Makes no system calls.
struct PathDecision {
    let query: RouteQuery
    let finding: ConnectionRoutes.Finding
    let interfaces: InterfaceTable

    private var destination: IPAddress { query.destination }
    private var answer: RouteAnswer { finding.answer }

    var verdict: PathStatus.Verdict {
        // For a source address that no interface has, the kernel's answer is misleading: an IPv6 lookup ignores the
        // source, and an IPv4 lookup reports a missing route.
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
        // A kernel that was booted without IPv6 returns EOPNOTSUPP for IPv6 addresses.
        case ENETUNREACH, EOPNOTSUPP: .notReachable(.noRoute)
        case EHOSTUNREACH: .notReachable(.unreachable)
        case EACCES: .notReachable(.prohibited)
        // EINVAL also means a malformed request, but then the kernel adds a message.
        case EINVAL where message == nil: .notReachable(.blackhole)
        default: .unknown(.lookupFailed)
        }
    }

    private func verdict(on route: Route) -> PathStatus.Verdict {
        // The loopback interface carries all packets to this machine itself, even if they are sent to the address of
        // another interface. While loopback is down, a lookup of 127.0.0.1 or ::1 finds the default route.
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
        // If the options require an interface and no route uses it, an IPv4 lookup still returns a route: it treats any
        // address as a neighbour on that interface. Only the lookup of the table entry (``RouteAnswer/tableMatch``)
        // shows that there is no route.
        if query.outputInterface != 0, case .refused = answer.tableMatch { return .notReachable(.noRoute) }
        guard let interface = route.outputInterface, hasCarrier(interface, answer) else {
            return .notReachable(.noCarrier)
        }
        guard hasUsableSource(route) else { return .notReachable(.noSource) }
        return .reachable(path(route, isLocal: false))
    }

    /// Returns whether an interface has carrier. Returns `false` for an interface that is missing from the table: it
    /// was removed, or it is so new that its own event has not arrived yet.
    private func hasCarrier(_ interface: UInt32, _ answer: RouteAnswer) -> Bool {
        guard interfaces.links[interface]?.hasCarrier == true else { return false }
        if case .route(let match) = answer.tableMatch { return !match.isDown }
        return true
    }

    /// Returns whether the destination could reply to the source address of the route.
    ///
    /// The kernel also returns routes without a usable source address:
    /// - with a link-local IPv6 source for a destination that is not link-local;
    /// - with an IPv6 source that has not passed duplicate address detection;
    /// - with a link-local IPv4 source, which a machine gives itself if DHCP fails. Routers do not forward packets from
    ///   it (RFC 3927 §2.7). A gateway that is itself link-local is an exception, because it exists only where the
    ///   administrator of a virtual machine has configured it to translate the source;
    /// - without any source (IPv4).
    private func hasUsableSource(_ route: Route) -> Bool {
        guard let source = source(of: route) else { return false }
        if destination.family == .ipv4 {
            return !source.isIPv4LinkLocal || (route.gateway ?? destination).isIPv4LinkLocal
        }
        if source.isLinkLocal, !destination.isLinkLocal { return false }
        // A source that is not in the table was added after the table was read. Its own event will follow.
        return interfaces.isUsable(source: source, on: route.outputInterface) ?? true
    }

    /// The source address of a lookup is not repeated in its answer.
    private func source(of route: Route) -> IPAddress? {
        query.source ?? finding.source ?? route.source
    }

    private func path(_ route: Route, isLocal: Bool) -> NetworkPath {
        NetworkPath(
            destination: destination,
            interface: route.outputInterface.flatMap { interfaces.descriptions[$0] },
            gateway: route.gateway,
            source: source(of: route),
            isLocal: isLocal,
            prefixLength: tableRoute?.prefixLength ?? route.prefixLength,
            table: tableRoute?.table ?? route.table,
            required: required,
            establishedRoute: isLocal ? 0 : establishedRoute(besides: route)
        )
    }

    /// Returns ``NetworkPath/establishedRoute``.
    ///
    /// - Parameter route: The route of new connections.
    private func establishedRoute(besides route: Route) -> Int {
        guard let established = finding.established else { return 0 }
        var hasher = Hasher()
        switch established.lookup {
        case .refused(let errno, _):
            hasher.combine(errno)
        case .route(let other):
            let isSame = other.outputInterface == route.outputInterface && other.gateway == route.gateway
            if isSame || established.hasSameEntry(as: answer) { return 0 }
            hasher.combine(other.outputInterface)
            hasher.combine(other.gateway)
            hasher.combine(other.outputInterface.map { hasCarrier($0, established) })
        }
        return hasher.finalize()
    }

    private var required: NetworkPath.Required {
        var properties: NetworkPath.Required = []
        if query.outputInterface != 0 { properties.insert(.interface) }
        if query.source != nil { properties.insert(.source) }
        return properties
    }

    private var tableRoute: Route? { answer.tableRoute }
}

extension PathDecision {
    private func hash(of tableRoutes: [Route]) -> Int {
        var hasher = Hasher()
        for tableRoute in tableRoutes {
            hasher.combine(IPPrefix(destination, length: tableRoute.prefixLength))
            hasher.combine(tableRoute.table)
            hasher.combine(tableRoute.outputInterface)
            hasher.combine(tableRoute.gateway)
        }
        return hasher.finalize()
    }

    /// The verdict, with the interface and the lifetime of its route.
    var addressVerdict: AddressVerdict {
        var addressVerdict = AddressVerdict(verdict)
        let tableRoutes = [answer.tableRoute, finding.established?.tableRoute].compactMap(\.self)
        if destination.family == .ipv6, !tableRoutes.isEmpty {
            addressVerdict.lifetime = tableRoutes.compactMap(\.lifetime).min()
            addressVerdict.isRenewable = tableRoutes.contains(where: \.isRenewable)
            addressVerdict.route = hash(of: tableRoutes)
        }
        switch answer.lookup {
        case .route(let route): addressVerdict.interface = route.outputInterface ?? 0
        case .refused(let errno, _): addressVerdict.isShortage = SystemError.shortages.contains(errno)
        }
        // The chosen source may belong to another interface than that of the route, and established connections may
        // use another one.
        addressVerdict.dependsOnOtherInterfaces =
            answer.mayHaveSeveralNextHops || finding.source != nil || finding.established != nil
        return addressVerdict
    }
}

extension RouteAnswer {
    /// Returns whether the same entry matches. With several next hops, the kernel may still choose different ones.
    fileprivate func hasSameEntry(as other: RouteAnswer) -> Bool {
        guard var entry = tableRoute, let otherEntry = other.tableRoute else { return false }
        // It passes between the two lookups.
        entry.lifetime = otherEntry.lifetime
        return entry == otherEntry
    }
}

/// The verdict on one address, and the properties of its route that tell the monitor when the verdict may change.
struct AddressVerdict: Hashable, Sendable {
    let verdict: PathStatus.Verdict
    /// The time until the route expires; `nil` if it does not expire.
    var lifetime: Duration?
    /// Whether the lifetime of the route may change without a notification.
    var isRenewable = false
    /// A hash of the IPv6 route's table entry, which is the same for all addresses with this route; 0 if there is no
    /// entry.
    var route = 0
    /// The index of the interface of the route, even if it has no carrier; 0 if there is no route.
    var interface: UInt32 = 0
    /// Whether a change of another interface may change the verdict, for example because the route has several next
    /// hops.
    var dependsOnOtherInterfaces = false
    /// Whether a shortage, for example of descriptors, prevented the lookup, so that it must be repeated.
    var isShortage = false

    init(_ verdict: PathStatus.Verdict) {
        self.verdict = verdict
    }

    static let noNetlink = AddressVerdict(.unknown(.noNetlink))
}

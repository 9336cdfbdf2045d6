internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Looks up the routes that `connect(2)` would use for TCP connections, including routes and rules that depend on the
/// source address.
///
/// If a socket is not bound to a source address, `connect(2)` first looks up a route without one, and then chooses the
/// source address. What follows depends on the family:
/// - IPv4: the kernel looks up the route again with the source address, and uses the second result.
/// - IPv6: the kernel uses the first route. Only if there is none, it chooses from the addresses of all interfaces, and
///   looks up the route with the chosen address. So it finds routes that are valid only for some source addresses
///   (`ip -6 route add default from PREFIX`), and tables that only a rule with `from` selects.
///
/// The packets of an established connection are always routed with their source address. For IPv6 they may therefore
/// take another route than `connect(2)` found; see ``Finding/established``.
///
/// The monitor makes the second lookup only if its result can differ.
///
/// Confined to the monitor's thread, like the socket that it uses.
final class ConnectionRoutes {
    /// The result of the lookups of one address.
    struct Finding {
        /// The answer that decides for new connections.
        var answer: RouteAnswer
        /// The source address that the kernel chose, if the route was looked up again with it; otherwise `nil`.
        var source: IPAddress?
        /// The answer for the packets of established connections, whose source address is that of ``answer``; `nil` if
        /// it cannot differ.
        var established: RouteAnswer?
    }

    /// What follows the lookup without a source address.
    private enum Step {
        /// The answer decides for new and for established connections.
        case done
        /// The kernel refuses to connect with this error.
        case refused(errno: CInt)
        /// The lookup with this source address decides.
        case again(from: IPAddress)
        /// The answer decides for new connections, and the lookup with this source address for established ones.
        case established(from: IPAddress)
    }

    private let socket: RequestSocket
    private let connect: (RouteQuery) throws(SystemError) -> ConnectLookup.Outcome
    private let ignoredFamilies: Set<IPAddress.Family>
    /// The properties of packets on which the policy rules depend. All of them until the rules have been read.
    private(set) var ruleSelectors = RuleSelectors.all

    /// - Parameters:
    ///   - socket: The socket for the lookups.
    ///   - ignoredFamilies: The families without a second lookup. Not empty only if a test injects this fault.
    ///   - connect: Returns the result of `connect(2)` for an IPv6 address without a route that is valid for all
    ///     source addresses. Throws if it could not ask the kernel.
    init(
        socket: RequestSocket,
        ignoredFamilies: Set<IPAddress.Family>,
        connect: @escaping (RouteQuery) throws(SystemError) -> ConnectLookup.Outcome
    ) {
        self.socket = socket
        self.ignoredFamilies = ignoredFamilies
        self.connect = connect
    }

    /// Reads from the policy rules on what the lookups depend.
    func readRules() {
        // If this cannot be determined, some lookups may be unnecessary, but are harmless.
        ruleSelectors = socket.ruleSelectors()
    }

    /// Looks up routes, and returns the results in the same order.
    ///
    /// - Parameter interfaces: The addresses from which the kernel chooses.
    /// - Throws: ``SystemError`` if the request socket fails. If only the second step of an address fails, this error
    ///   takes the place of the kernel's answer.
    func find(_ queries: [RouteQuery], _ interfaces: InterfaceTable) throws(SystemError) -> [Finding] {
        var findings = try socket.lookUp(queries).map { Finding(answer: $0) }
        var further: [(index: Int, query: RouteQuery, isEstablished: Bool)] = []
        for (index, query) in queries.enumerated() {
            switch try step(after: findings[index].answer, query, interfaces) {
            case .done: break
            case .refused(let errno): findings[index].refuse(errno)
            case .again(let source): further.append((index, query.from(source), false))
            case .established(let source): further.append((index, query.from(source), true))
            }
        }
        if further.isEmpty { return findings }
        let answers = try socket.lookUp(further.map(\.query))
        for (entry, answer) in zip(further, answers) {
            if entry.isEstablished {
                findings[entry.index].note(established: answer)
            } else {
                findings[entry.index] = Finding(answer: answer, source: entry.query.source)
            }
        }
        return findings
    }

    private func step(
        after answer: RouteAnswer,
        _ query: RouteQuery,
        _ interfaces: InterfaceTable
    ) throws(SystemError) -> Step {
        let family = query.destination.family
        guard query.source == nil, !ignoredFamilies.contains(family) else { return .done }
        switch (family, answer.lookup) {
        case (.ipv4, .route(let route)):
            // The choice between several next hops depends on the source, too.
            let dependsOnSource = ruleSelectors.contains(.ipv4Source) || answer.mayHaveSeveralNextHops
            return dependsOnSource ? route.source.map { .again(from: $0) } ?? .done : .done
        case (.ipv6, .route(let route)):
            let dependsOnSource = ruleSelectors.contains(.ipv6Source)
            return dependsOnSource ? route.source.map { .established(from: $0) } ?? .done : .done
        case (.ipv6, .refused(let errno, _)):
            return interfaces.hasRoutableIPv6Address ? try step(afterRefusal: errno, query) : .done
        case (.ipv4, .refused):
            return .done
        }
    }

    /// Returns the next step for an IPv6 address without a route that is valid for all source addresses.
    private func step(afterRefusal errno: CInt, _ query: RouteQuery) throws(SystemError) -> Step {
        let outcome: ConnectLookup.Outcome
        do throws(SystemError) {
            outcome = try connect(query)
        } catch {
            return .refused(errno: error.errno)
        }
        switch outcome {
        case .source(let source): return .again(from: source)
        case .refused(let other):
            return try isReason(other, insteadOf: errno, query) ? .refused(errno: other) : .done
        case .unavailable: return .done
        }
    }

    /// Returns whether the error of `connect(2)` on a UDP socket is that of a TCP connection, rather than the error of
    /// the lookup without a source address.
    private func isReason(
        _ errno: CInt,
        insteadOf first: CInt,
        _ query: RouteQuery
    ) throws(SystemError) -> Bool {
        // Other errors are not about the route, and neither is EINVAL for a link-local address without a zone.
        let lacksZone = query.destination.isLinkLocal && query.outputInterface == 0
        let isAboutRoute =
            [ENETUNREACH, EHOSTUNREACH, EACCES].contains(errno) || errno == EINVAL && !lacksZone
        // The socket has the user ID of the process, not that of the query.
        guard errno != first, isAboutRoute, query.userID == nil else { return false }
        // If the first lookup has another result for UDP, a rule distinguishes the protocols.
        var query = query
        query.transport = .udp
        guard case .refused(first, _) = try socket.lookUp([query])[0].lookup else { return false }
        return true
    }
}

extension ConnectionRoutes.Finding {
    fileprivate mutating func refuse(_ errno: CInt) {
        let refusal = RouteLookup.refused(errno: errno, message: nil)
        answer = RouteAnswer(lookup: refusal, tableMatch: answer.tableMatch)
    }

    /// A shortage does not mean that established connections have another route, so it takes the place of the answer.
    fileprivate mutating func note(established answer: RouteAnswer) {
        if case .refused(let errno, _) = answer.lookup, SystemError.shortages.contains(errno) {
            refuse(errno)
        } else {
            established = answer
        }
    }
}

extension RouteQuery {
    fileprivate func from(_ source: IPAddress) -> RouteQuery {
        var query = self
        query.source = source
        return query
    }
}

extension RouteAnswer {
    /// Whether the route in the table has several next hops, or a next hop object, which may be a group of several.
    var mayHaveSeveralNextHops: Bool {
        guard let match = tableRoute else { return false }
        return !match.nextHops.isEmpty || match.nextHopObject != nil
    }

    /// The matching entry of the routing table; `nil` if there is none.
    var tableRoute: Route? {
        if case .route(let match) = tableMatch { match } else { nil }
    }
}

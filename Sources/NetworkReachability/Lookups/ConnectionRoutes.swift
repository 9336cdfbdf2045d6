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
/// The monitor makes the second lookup only if its result can differ.
///
/// Confined to the monitor's thread, like the socket that it uses.
final class ConnectionRoutes {
    /// The result of the lookups of one address.
    struct Finding {
        let answer: RouteAnswer
        /// The source address that the kernel chose, if the route was looked up again with it; otherwise `nil`.
        var source: IPAddress?
    }

    private let socket: RequestSocket
    private let chooseSource: (RouteQuery) throws(SystemError) -> IPAddress?
    private let ignoredFamilies: Set<IPAddress.Family>
    /// The properties of packets on which the policy rules depend. All of them until the rules have been read.
    private(set) var ruleSelectors = RuleSelectors.all

    /// - Parameters:
    ///   - socket: The socket for the lookups.
    ///   - ignoredFamilies: The families without a second lookup. Not empty only if a test injects this fault.
    ///   - chooseSource: Returns the source address that the kernel chooses for an IPv6 connection without a route that
    ///     is valid for all sources; `nil` if there is no route at all. Throws if it could not ask the kernel.
    init(
        socket: RequestSocket,
        ignoredFamilies: Set<IPAddress.Family>,
        chooseSource: @escaping (RouteQuery) throws(SystemError) -> IPAddress?
    ) {
        self.socket = socket
        self.ignoredFamilies = ignoredFamilies
        self.chooseSource = chooseSource
    }

    /// Reads from the policy rules on what the lookups depend.
    func readRules() {
        // If this cannot be determined, some lookups may be unnecessary, but are harmless.
        ruleSelectors = socket.ruleSelectors()
    }

    /// Looks up routes, and returns the results in the same order.
    ///
    /// - Parameter interfaces: The addresses from which the kernel chooses.
    /// - Throws: ``SystemError`` if the request socket fails. If only the source address of an address cannot be
    ///   determined, this error takes the place of the kernel's answer.
    func find(_ queries: [RouteQuery], _ interfaces: InterfaceTable) throws(SystemError) -> [Finding] {
        var findings = try socket.lookUp(queries).map { Finding(answer: $0) }
        var changed: [(index: Int, query: RouteQuery)] = []
        for index in queries.indices {
            var query = queries[index]
            let answer = findings[index].answer
            do throws(SystemError) {
                guard let source = try source(of: query, answer, interfaces) else { continue }
                query.source = source
                changed.append((index, query))
            } catch {
                let failure = RouteLookup.refused(errno: error.errno, message: nil)
                findings[index] = Finding(answer: RouteAnswer(lookup: failure, tableMatch: answer.tableMatch))
            }
        }
        if changed.isEmpty { return findings }
        let answers = try socket.lookUp(changed.map(\.query))
        for (entry, answer) in zip(changed, answers) {
            findings[entry.index] = Finding(answer: answer, source: entry.query.source)
        }
        return findings
    }

    /// Returns the source address with which the route must be looked up again; `nil` if the first answer decides.
    private func source(
        of query: RouteQuery,
        _ answer: RouteAnswer,
        _ interfaces: InterfaceTable
    ) throws(SystemError) -> IPAddress? {
        let family = query.destination.family
        guard query.source == nil, !ignoredFamilies.contains(family) else { return nil }
        switch (family, answer.lookup) {
        case (.ipv4, .route(let route)):
            // The choice between several next hops depends on the source, too.
            let dependsOnSource = ruleSelectors.contains(.ipv4Source) || answer.mayHaveSeveralNextHops
            return dependsOnSource ? route.source : nil
        case (.ipv6, .refused):
            return interfaces.hasRoutableIPv6Address ? try chooseSource(query) : nil
        default:
            return nil
        }
    }
}

extension RouteAnswer {
    /// Whether the route in the table has several next hops, or a next hop object, which may be a group of several.
    var mayHaveSeveralNextHops: Bool {
        guard case .route(let match) = tableMatch else { return false }
        return !match.nextHops.isEmpty || match.nextHopObject != nil
    }
}

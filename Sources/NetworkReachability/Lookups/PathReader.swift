internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads the interfaces and looks up the paths to addresses in the kernel.
///
/// Confined to the monitor's thread, like the socket that it owns.
final class PathReader {
    private let socket: RequestSocket
    private let routes: ConnectionRoutes
    private let generalAddresses: [IPAddress]
    private var classifier: InterfaceClassifier
    private(set) var interfaces = InterfaceTable()

    /// - Parameters:
    ///   - routes: The lookups over this socket.
    ///   - generalAddresses: Addresses outside this machine's networks. If one of them has a route over an interface,
    ///     this interface counts as an interface with a default route.
    ///   - sysfs: The reader for the network namespace of the socket.
    init(
        socket: RequestSocket,
        routes: ConnectionRoutes,
        generalAddresses: [IPAddress],
        sysfs: SysfsReader
    ) {
        self.socket = socket
        self.routes = routes
        self.generalAddresses = generalAddresses
        classifier = InterfaceClassifier(sysfs: sysfs)
    }

    /// The outcome of reading interfaces and addresses.
    struct Reading {
        /// The number of kernel messages that could not be parsed.
        var malformed = 0
        /// What kept changing while the kernel listed it, so that it may be inconsistent.
        var interrupted = StaleInterfaces()
        /// The interfaces that were read, and those that no longer exist.
        var indices: Set<UInt32> = []
    }

    /// Reads interfaces, addresses and rules again.
    ///
    /// - Throws: ``SystemError`` if the request socket fails. ``interfaces`` is then unchanged.
    func read(_ stale: StaleInterfaces) throws(SystemError) -> Reading {
        var table = interfaces
        let reading = try stale.isEverything ? readEverything(into: &table) : read(stale, into: &table)
        if stale.isEverything || stale.rules { routes.readRules() }
        table.descriptions = descriptions(of: table)
        interfaces = table
        return reading
    }

    private func readEverything(into table: inout InterfaceTable) throws(SystemError) -> Reading {
        let links = try socket.links()
        let addresses = try socket.addresses()
        let before = table
        table = InterfaceTable(links: links.elements, addresses: addresses.elements)
        let isInterrupted = links.isInterrupted || addresses.isInterrupted
        return Reading(
            malformed: links.malformed + addresses.malformed,
            interrupted: isInterrupted ? .everything : StaleInterfaces(),
            indices: Set(before.links.keys).union(table.links.keys)
        )
    }

    /// Reads only what is stale, so that the size of the kernel's replies does not depend on the number of other
    /// interfaces and addresses.
    private func read(
        _ stale: StaleInterfaces,
        into table: inout InterfaceTable
    ) throws(SystemError) -> Reading {
        var reading = Reading(indices: stale.indices)
        for index in stale.links {
            let link = try socket.link(index)
            table.replaceLink(index, with: link.elements.first)
            reading.malformed += link.malformed
        }
        for addresses in stale.addresses {
            let list = try socket.addresses(of: addresses.interface, addresses.family)
            table.replace(addresses, with: list.elements)
            reading.malformed += list.malformed
            if list.isInterrupted { reading.interrupted.mark(addresses) }
        }
        return reading
    }

    private func descriptions(of table: InterfaceTable) -> [UInt32: NetworkInterface] {
        let types = classifier.types(of: table.links)
        let stack = InterfaceStack(links: table.links, types: types)
        // All tunnels share the same candidates, so each candidate is looked up once.
        var known: [UInt32: Bool] = [:]
        let all = stack.describeAll(addresses: assignedAddresses(in: table)) { interface in
            let answer = known[interface] ?? hasDefaultRoute(over: interface, table)
            known[interface] = answer
            return answer
        }
        return Dictionary(uniqueKeysWithValues: all.map { ($0.index, $0) })
    }

    /// Returns the addresses for the descriptions. Unchanged ones are taken from the previous descriptions, because an
    /// interface may have thousands.
    private func assignedAddresses(
        in table: InterfaceTable
    ) -> [UInt32: [NetworkInterface.AssignedAddress]] {
        var assigned: [UInt32: [NetworkInterface.AssignedAddress]] = [:]
        for (index, addresses) in table.addresses {
            let isUnchanged = addresses == interfaces.addresses[index]
            let known = isUnchanged ? interfaces.descriptions[index]?.assignedAddresses : nil
            assigned[index] = known ?? addresses.map(NetworkInterface.AssignedAddress.init)
        }
        return assigned
    }

    /// Returns whether any of the general addresses has a route over an interface.
    private func hasDefaultRoute(over interface: UInt32, _ table: InterfaceTable) -> Bool {
        let queries = generalAddresses.map { RouteQuery($0, outputInterface: interface) }
        let findings = (try? routes.find(queries, table)) ?? []
        return findings.contains { if case .route = $0.answer.tableMatch { true } else { false } }
    }

    /// Whether the path to an address may depend on the port, because a policy rule does.
    var dependsOnPorts: Bool { routes.ruleSelectors.contains(.destinationPort) }

    /// The maximum number of addresses per call of ``lookUp(_:)``.
    static let batchSize = RequestSocket.batchSize

    /// Looks up addresses, each with its options, and returns the verdicts in the same order.
    ///
    /// - Throws: ``SystemError`` if the request socket fails.
    func lookUp(_ addresses: [(IPAddress, SparseOptions)]) throws(SystemError) -> [AddressVerdict] {
        let queries = addresses.map { query($0.0, $0.1) }
        var findings = try routes.find(queries.compactMap(\.self), interfaces).makeIterator()
        return queries.map { query in
            guard let query else { return AddressVerdict(.notReachable(.noInterface)) }
            return PathDecision(query: query, finding: findings.next()!, interfaces: interfaces)
                .addressVerdict
        }
    }

    /// Returns the query for an address with its options; `nil` if the interface in the options does not exist.
    private func query(_ address: IPAddress, _ sparseOptions: SparseOptions) -> RouteQuery? {
        if sparseOptions.areDefaults { return RouteQuery(address) }
        let options = sparseOptions.options
        var query = RouteQuery(
            address,
            source: options.source,
            mark: options.mark,
            userID: options.userID,
            port: options.port
        )
        if let name = options.interface {
            guard let index = interfaces.index(named: name) else { return nil }
            query.outputInterface = index
        }
        return query
    }
}

internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads the interfaces and looks up the paths to addresses in the kernel.
///
/// Confined to the monitor's thread, like the socket that it owns.
final class PathReader {
    private let socket: RequestSocket
    private let generalAddresses: [IPAddress]
    private var classifier: InterfaceClassifier
    private(set) var interfaces = InterfaceTable()

    /// - Parameters:
    ///   - generalAddresses: Addresses outside this machine's networks. If one of them has a route over an interface,
    ///     this interface counts as an interface with a default route.
    ///   - sysfs: The reader for the network namespace of the socket.
    init(socket: RequestSocket, generalAddresses: [IPAddress], sysfs: SysfsReader) {
        self.socket = socket
        self.generalAddresses = generalAddresses
        classifier = InterfaceClassifier(sysfs: sysfs)
    }

    /// The outcome of reading the tables of interfaces and addresses.
    struct Reading {
        /// The number of kernel messages that could not be parsed.
        let malformed: Int
        /// Whether the tables kept changing while the kernel listed them, so that they may be inconsistent.
        let isInterrupted: Bool
    }

    /// Reads the interfaces and their addresses again.
    func readInterfaces() throws(SystemError) -> Reading {
        let links = try socket.links()
        let addresses = try socket.addresses()
        interfaces = InterfaceTable(links: links.elements, addresses: addresses.elements)
        describe(addresses.elements)
        return Reading(
            malformed: links.malformed + addresses.malformed,
            isInterrupted: links.isInterrupted || addresses.isInterrupted
        )
    }

    private func describe(_ addresses: [InterfaceAddress]) {
        let types = classifier.types(of: interfaces.links)
        let stack = InterfaceStack(links: interfaces.links, types: types)
        // All tunnels share the same candidates, so each candidate is looked up once.
        var known: [UInt32: Bool] = [:]
        let all = stack.describeAll(addresses: addresses) { interface in
            let answer = known[interface] ?? hasDefaultRoute(over: interface)
            known[interface] = answer
            return answer
        }
        interfaces.descriptions = Dictionary(uniqueKeysWithValues: all.map { ($0.index, $0) })
    }

    /// Returns whether any of the general addresses has a route over an interface.
    private func hasDefaultRoute(over interface: UInt32) -> Bool {
        let queries = generalAddresses.map { RouteQuery($0, outputInterface: interface) }
        let answers = (try? socket.lookUp(queries)) ?? []
        return answers.contains { if case .route = $0.tableMatch { true } else { false } }
    }

    /// The maximum number of addresses per call of ``lookUp(_:)``.
    static let batchSize = RequestSocket.batchSize

    /// Looks up addresses, each with its options, and returns the verdicts in the same order.
    ///
    /// - Throws: ``SystemError`` if the request socket fails.
    func lookUp(_ addresses: [(IPAddress, SparseOptions)]) throws(SystemError) -> [AddressVerdict] {
        let queries = addresses.map { query($0.0, $0.1) }
        var answers = try socket.lookUp(queries.compactMap(\.self))[...]
        return queries.map { query in
            guard let query else { return AddressVerdict(.notReachable(.noInterface)) }
            return PathDecision(query: query, answer: answers.removeFirst(), interfaces: interfaces)
                .addressVerdict
        }
    }

    /// Returns the query for an address with its options; `nil` if the interface in the options does not exist.
    private func query(_ address: IPAddress, _ sparseOptions: SparseOptions) -> RouteQuery? {
        if sparseOptions.areDefaults { return RouteQuery(address) }
        let options = sparseOptions.options
        var query = RouteQuery(address, source: options.source, mark: options.mark, userID: options.userID)
        if let name = options.interface {
            guard let index = interfaces.index(named: name) else { return nil }
            query.outputInterface = index
        }
        return query
    }
}

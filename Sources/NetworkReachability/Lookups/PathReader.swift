internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Reads the kernel's present state: interfaces, and the verdict on any address.
///
/// Confined to the monitor's thread, like the socket it owns.
final class PathReader {
    private let socket: RequestSocket
    private let generalAddresses: [IPAddress]
    private var classifier: InterfaceClassifier
    private(set) var interfaces = InterfaceTable()

    init(socket: RequestSocket, _ configuration: PathMonitor.Configuration) {
        self.socket = socket
        generalAddresses = configuration.generalAddresses
        // sysfs shows the namespace that it was mounted in.
        classifier = InterfaceClassifier(sysfs: configuration.networkNamespace == nil ? .system : .none)
    }

    /// How a reading of the tables went.
    struct Reading {
        /// Messages of the kernel that could not be read.
        let malformed: Int
        /// Whether the tables kept changing while they were read.
        let isInterrupted: Bool
    }

    /// Reads the interfaces and their addresses anew.
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
        // Of many tunnels each asks about the same interfaces.
        var known: [UInt32: Bool] = [:]
        let all = stack.describeAll(addresses: addresses) { interface in
            let answer = known[interface] ?? hasDefaultRoute(over: interface)
            known[interface] = answer
            return answer
        }
        interfaces.descriptions = Dictionary(uniqueKeysWithValues: all.map { ($0.index, $0) })
    }

    /// Whether packets to the outside could leave by an interface.
    private func hasDefaultRoute(over interface: UInt32) -> Bool {
        let queries = generalAddresses.map { RouteQuery($0, outputInterface: interface) }
        let answers = (try? socket.lookUp(queries)) ?? []
        return answers.contains { if case .route = $0.tableMatch { true } else { false } }
    }

    /// How many addresses may be judged at once.
    static let batchSize = RequestSocket.batchSize

    /// Judges addresses, each with the options of those who want to know; in their order.
    ///
    /// - Throws: ``SystemError`` when the kernel does not answer.
    func judge(_ addresses: [(IPAddress, SparseOptions)]) throws(SystemError) -> [Judgement] {
        let queries = addresses.map { query($0.0, $0.1) }
        var answers = try socket.lookUp(queries.compactMap(\.self))[...]
        return queries.map { query in
            guard let query else { return Judgement(.notReachable(.noInterface)) }
            return PathDecision(query: query, answer: answers.removeFirst(), interfaces: interfaces).judgement
        }
    }

    /// `nil` when the interface that has to be used is not there.
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

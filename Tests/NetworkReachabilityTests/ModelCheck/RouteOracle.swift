internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability

/// Determines the correct statuses, independently of the code under test.
///
/// The source of the statuses is `ip` (iproute2), which looks up each address twice if `connect(2)` does: without a
/// source address and with it. They are compared with ``SocketOracle``, which uses `connect(2)`. If `connect(2)` refuses
/// an IPv6 address, only its error shows the result of the second lookup.
///
/// Not safe for concurrent use.
final class RouteOracle {
    /// The correct status of one address.
    enum Answer: Equatable {
        case reachable(source: [UInt8], interface: UInt32)
        case notReachable(PathStatus.Reason)
    }

    /// The correct statuses of all addresses at (nearly) one moment.
    struct Snapshot {
        let expectedAnswers: [IPAddress: Answer]
        /// Whether the kernel is about to change something by itself: duplicate address detection is running, a carrier
        /// change has not been processed yet, or a route expires soon.
        let isChanging: Bool
        /// The differences between `ip` and `connect(2)`, in words.
        let contradictions: [String]
    }

    private let addresses: [IPAddress]
    private let ip: IPBatch
    private let socketOracle: SocketOracle
    private let port: UInt16?
    /// The interface names by index that the running `ip` may have cached.
    private var names: [UInt32: String] = [:]

    /// - Parameter port: The port of the connections; `nil` if the monitor does not know it.
    init(in namespace: NetworkNamespace, addresses: [IPAddress], port: UInt16?) {
        self.addresses = addresses
        self.port = port
        ip = IPBatch(in: namespace)
        socketOracle = SocketOracle(namespace: namespace, port: port ?? 9)
    }

    func ask() throws -> Snapshot {
        let answers = try ip.ask(["addr show"] + addresses.flatMap { questions(about: $0) })
        guard case .done(let text) = answers[0] else { throw OracleFailure(answer: "\(answers[0])") }
        let interfaces = try InterfaceReport(json: text)
        if interfaces.renames(names) {
            ip.forget()
            names = [:]
            return try ask()
        }
        names.merge(interfaces.names) { _, new in new }
        var reports = try addresses.indices.map { position in
            try RouteReport(lookup: answers[1 + 2 * position], match: answers[2 + 2 * position])
        }
        let sockets = socketOracle.ask(about: addresses)
        for position in addresses.indices where addresses[position].family == .ipv6 {
            if case .refuses(let errno) = sockets[position] { reports[position].refuse(errno) }
        }
        let sources = addresses.indices.compactMap { position in
            source(at: position, reports[position], sockets[position]).map { (position, $0) }
        }
        let further = try ip.ask(sources.flatMap { questions(about: addresses[$0.0], from: $0.1) })
        for (index, (position, source)) in sources.enumerated() {
            reports[position] = try RouteReport(
                lookup: further[2 * index],
                match: further[2 * index + 1],
                source: source
            )
        }
        let expectedAnswers = zip(addresses, reports).map { $1.expected(about: $0, interfaces) }
        return Snapshot(
            expectedAnswers: Dictionary(uniqueKeysWithValues: zip(addresses, expectedAnswers)),
            isChanging: interfaces.isChanging || reports.contains(where: \.isExpiring),
            contradictions: contradictions(expectedAnswers, sockets)
        )
    }

    private func questions(about address: IPAddress, from source: IPAddress? = nil) -> [String] {
        var words = IPAddress(bytes: address.bytes)!.description
        if let source { words += " from \(IPAddress(bytes: source.bytes)!)" }
        if address.zone != 0 { words += " oif if\(address.zone)" }
        words += " ipproto tcp"
        if let port { words += " dport \(port)" }
        return ["route get \(words)", "route get fibmatch \(words)"]
    }

    /// Returns the source address with which `connect(2)` looks up the route again; `nil` if it does not.
    ///
    /// For IPv4, this is the source of the first route. For IPv6, `connect(2)` looks up the route again only if it
    /// finds none without a source. Only `connect(2)` itself knows the source that it chose.
    private func source(
        at position: Int,
        _ report: RouteReport,
        _ answer: SocketOracle.Answer
    ) -> IPAddress? {
        switch (addresses[position].family, answer) {
        case (.ipv4, _): report.source
        case (.ipv6, .sends(let source)): report.hasRoute ? nil : source
        case (.ipv6, .refuses): nil
        }
    }

    private func contradictions(_ expectedAnswers: [Answer], _ answers: [SocketOracle.Answer]) -> [String] {
        addresses.indices.compactMap { position in
            let (expected, answer) = (expectedAnswers[position], answers[position])
            return expected.agrees(with: answer)
                ? nil : "\(addresses[position]): ip: \(expected), connect(2): \(answer)"
        }
    }
}

extension RouteOracle.Answer {
    /// Returns whether the answer of `connect(2)` does not contradict this one. `connect(2)` does not notice a lost
    /// carrier, a loopback interface that is down, or a source address to which the host could not reply.
    fileprivate func agrees(with answer: SocketOracle.Answer) -> Bool {
        switch (self, answer) {
        case (.reachable(let source, _), .sends(let from)): source == from.bytes
        case (.notReachable(.noCarrier), _), (.notReachable(.noSource), _), (.notReachable(.loopbackDown), _):
            true
        case (.notReachable, .refuses): true
        default: false
        }
    }
}

/// The error for an unexpected answer of `ip`.
struct OracleFailure: Error {
    let answer: String
}

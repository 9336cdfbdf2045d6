internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability

/// Determines the correct statuses, independently of the code under test.
///
/// The source of the statuses is `ip` (iproute2). They are compared with ``SocketOracle``, which uses `connect(2)`. Not
/// safe for concurrent use.
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
    /// The interface names by index that the running `ip` may have cached.
    private var names: [UInt32: String] = [:]

    init(in namespace: NetworkNamespace, addresses: [IPAddress]) {
        self.addresses = addresses
        ip = IPBatch(in: namespace)
        socketOracle = SocketOracle(namespace: namespace)
    }

    func ask() throws -> Snapshot {
        let answers = try ip.ask(["addr show"] + addresses.flatMap(Self.questions))
        guard case .done(let text) = answers[0] else { throw OracleFailure(answer: "\(answers[0])") }
        let interfaces = try InterfaceReport(json: text)
        if interfaces.renames(names) {
            ip.forget()
            names = [:]
            return try ask()
        }
        names.merge(interfaces.names) { _, new in new }
        let reports = try addresses.indices.map { position in
            try RouteReport(lookup: answers[1 + 2 * position], match: answers[2 + 2 * position])
        }
        let expectedAnswers = zip(addresses, reports).map { $1.expected(about: $0, interfaces) }
        return Snapshot(
            expectedAnswers: Dictionary(uniqueKeysWithValues: zip(addresses, expectedAnswers)),
            isChanging: interfaces.isChanging || reports.contains(where: \.isExpiring),
            contradictions: contradictions(expectedAnswers, reports)
        )
    }

    private static func questions(about address: IPAddress) -> [String] {
        let target = IPAddress(bytes: address.bytes)!.description
        let zone = address.zone == 0 ? "" : " oif if\(address.zone)"
        return ["route get \(target)\(zone)", "route get fibmatch \(target)\(zone)"]
    }

    private func contradictions(_ expectedAnswers: [Answer], _ reports: [RouteReport]) -> [String] {
        let answers = socketOracle.ask(about: addresses)
        return addresses.indices.compactMap { position in
            let address = addresses[position]
            // For IPv6 the choice between several next hops depends on the protocol, which a lookup does not specify.
            if address.family == .ipv6, reports[position].hasSeveralWays { return nil }
            let (expected, answer) = (expectedAnswers[position], answers[position])
            return expected.agrees(with: answer) ? nil : "\(address): ip: \(expected), connect(2): \(answer)"
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

internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability

/// Determines the correct statuses, independently of the code under test: it queries iproute2, and the kernel with
/// `connect(2)` on a UDP socket, and compares the two.
///
/// Not safe for concurrent use: one thread owns it.
final class RouteOracle {
    /// The correct status of one address.
    enum Answer: Equatable {
        case reachable(source: [UInt8], interface: UInt32)
        case notReachable(PathStatus.Reason)
    }

    /// The correct statuses of all addresses at (nearly) one moment.
    struct Snapshot {
        let expectedAnswers: [IPAddress: Answer]
        /// Whether the kernel will soon change something by itself: duplicate address detection is running, the kernel
        /// is about to process a carrier change, or a route is about to expire.
        let isChanging: Bool
        /// The contradictions between iproute2 and the socket.
        let contradictions: [String]
    }

    private let addresses: [IPAddress]
    private let ip: IPBatch
    private let socketOracle: SocketOracle
    /// The interface names that `ip` may have cached.
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
            // With several next hops, the IPv6 route depends on the protocol too, which a lookup does not specify.
            if address.family == .ipv6, reports[position].hasSeveralWays { return nil }
            let (expected, answer) = (expectedAnswers[position], answers[position])
            return expected.agrees(with: answer) ? nil : "\(address): ip says \(expected), a socket \(answer)"
        }
    }
}

extension RouteOracle.Answer {
    /// Returns whether a socket's answer fits. A socket does not show a lost carrier, a loopback interface that is
    /// down, or a source address to which replies cannot be sent.
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

/// An unexpected answer of `ip`.
struct OracleFailure: Error {
    let answer: String
}

internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability

/// Tells what is true now, and shares nothing with the code under test: it asks iproute2, and a UDP socket
/// by `connect(2)`, and holds the two against each other.
///
/// Not safe for concurrent use: one thread owns it.
final class RouteOracle {
    /// What must be published about one address.
    enum Truth: Equatable {
        case reachable(source: [UInt8], interface: UInt32)
        case notReachable(PathStatus.Reason)
    }

    /// The truth about every address at (nearly) one moment.
    struct Snapshot {
        let truths: [IPAddress: Truth]
        /// Whether the kernel will change something by itself soon: duplicate address detection runs, a
        /// carrier is being taken notice of, a route expires.
        let isChanging: Bool
        /// Where iproute2 and the socket say different things.
        let contradictions: [String]
    }

    private let addresses: [IPAddress]
    private let ip: IPBatch
    private let socketOracle: Oracle
    /// The names that `ip` may remember.
    private var names: [UInt32: String] = [:]

    init(in namespace: NetworkNamespace, addresses: [IPAddress]) {
        self.addresses = addresses
        ip = IPBatch(in: namespace)
        socketOracle = Oracle(namespace: namespace)
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
        let truths = zip(addresses, reports).map { $1.truth(about: $0, interfaces) }
        return Snapshot(
            truths: Dictionary(uniqueKeysWithValues: zip(addresses, truths)),
            isChanging: interfaces.isChanging || reports.contains(where: \.isExpiring),
            contradictions: contradictions(truths, reports)
        )
    }

    private static func questions(about address: IPAddress) -> [String] {
        let target = IPAddress(bytes: address.bytes)!.description
        let zone = address.zone == 0 ? "" : " oif if\(address.zone)"
        return ["route get \(target)\(zone)", "route get fibmatch \(target)\(zone)"]
    }

    private func contradictions(_ truths: [Truth], _ reports: [RouteReport]) -> [String] {
        let answers = socketOracle.ask(about: addresses)
        return addresses.indices.compactMap { position in
            let address = addresses[position]
            // Which way of several IPv6 takes depends on the protocol too, and a lookup names none.
            if address.family == .ipv6, reports[position].hasSeveralWays { return nil }
            let (truth, answer) = (truths[position], answers[position])
            return truth.agrees(with: answer) ? nil : "\(address): ip says \(truth), a socket \(answer)"
        }
    }
}

extension RouteOracle.Truth {
    /// A socket sees neither a lost carrier, nor that loopback is down, nor a source that no one could answer to.
    fileprivate func agrees(with answer: Oracle.Answer) -> Bool {
        switch (self, answer) {
        case (.reachable(let source, _), .sends(let from)): source == from.bytes
        case (.notReachable(.noCarrier), _), (.notReachable(.noSource), _), (.notReachable(.loopbackDown), _):
            true
        case (.notReachable, .refuses): true
        default: false
        }
    }
}

/// `ip` did not answer as it should.
struct OracleFailure: Error {
    let answer: String
}

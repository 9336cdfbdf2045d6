internal import Glibc
internal import NetwatchEventLoop
internal import Testing

@testable internal import NetwatchNetlink
@testable internal import NetworkReachability

@Suite struct PathDecisionTests {
    private static let up: UInt32 = 0x1 | 0x40 | 0x1_0000  // IFF_UP, IFF_RUNNING, IFF_LOWER_UP
    private static let operationallyUp: UInt8 = 6
    private static let operationallyDown: UInt8 = 2

    private var route = Route()
    private var match = Route()
    private var links: [Link] = []
    private var addresses: [InterfaceAddress] = []

    init() {
        route.kind = .unicast
        route.outputInterface = 2
        route.source = IPAddress("192.0.2.1")
        match = route
        links = [link(flags: Self.up, state: Self.operationallyUp)]
    }

    private func link(flags: UInt32, state: UInt8) -> Link {
        Link(index: 2, name: "eth0", flags: flags, operationalState: state)
    }

    private func verdict(
        on destination: String = "198.51.100.7",
        _ lookup: RouteLookup? = nil
    ) -> PathStatus.Verdict {
        var interfaces = InterfaceTable(links: links, addresses: addresses)
        interfaces.descriptions = [2: .fake(2)]
        let decision = PathDecision(
            query: RouteQuery(IPAddress(destination)!),
            finding: .init(answer: RouteAnswer(lookup: lookup ?? .route(route), tableMatch: .route(match))),
            interfaces: interfaces
        )
        return decision.verdict
    }

    @Test func `a unicast route with carrier and source is reachable`() throws {
        guard case .reachable(let path) = verdict() else { throw Unexpected(verdict()) }
        #expect(path.interfaceName == "eth2")
        #expect(path.source == IPAddress("192.0.2.1"))
        #expect(!path.isLocal)
    }

    @Test(arguments: [
        (ENETUNREACH, nil, PathStatus.Verdict.notReachable(.noRoute)),
        (EHOSTUNREACH, nil, .notReachable(.unreachable)),
        (EACCES, nil, .notReachable(.prohibited)),
        (EINVAL, nil, .notReachable(.blackhole)),
        (EINVAL, "Invalid values in header", .unknown(.lookupFailed)),
        (EOPNOTSUPP, nil, .notReachable(.noRoute)),
        (ENOBUFS, nil, .unknown(.lookupFailed)),
    ])
    func `each kernel error has its own reason`(errno: CInt, words: String?, expected: PathStatus.Verdict) {
        #expect(verdict(.refused(errno: errno, message: words)) == expected)
    }

    @Test(arguments: [(ENETUNREACH, false), (EPERM, false), (ENOBUFS, true), (EMFILE, true)])
    func `a lookup that failed because of a shortage must be repeated`(errno: CInt, isShortage: Bool) {
        let refusal = RouteLookup.refused(errno: errno, message: nil)
        let decision = PathDecision(
            query: RouteQuery(IPAddress("2001:db8::7")!),
            finding: .init(answer: RouteAnswer(lookup: refusal, tableMatch: refusal)),
            interfaces: InterfaceTable()
        )
        #expect(decision.addressVerdict.isShortage == isShortage)
    }

    @Test func `a lost carrier is detected by the link`() {
        var decision = self
        decision.links = [link(flags: Self.up, state: Self.operationallyDown)]
        #expect(decision.verdict() == .notReachable(.noCarrier))
        decision.links = []
        #expect(decision.verdict() == .notReachable(.noCarrier))
    }

    @Test func `a lost carrier is detected by the table match, unless another next hop has carrier`() {
        let linkDown: UInt8 = 16
        var decision = self
        decision.match.flags = UInt32(linkDown)
        #expect(decision.verdict() == .notReachable(.noCarrier))
        decision.match.nextHops = [.init(interface: 2, flags: 0), .init(interface: 3, flags: linkDown)]
        guard case .reachable = decision.verdict() else {
            Issue.record("one of two next hops has carrier, but the verdict is \(decision.verdict())")
            return
        }
    }

    @Test(
        arguments: [
            (nil, 0, false), ("fe80::1", 0, false), ("2001:db8::1", 0, true),
            ("2001:db8::1", 0x40, false), ("2001:db8::1", 0x48, false), ("2001:db8::1", 0x44, true),
            ("2001:db8::1", 0x20, true),
        ] as [(String?, UInt32, Bool)]
    )
    func `an IPv6 source must be global and not tentative`(source: String?, flags: UInt32, usable: Bool) {
        var decision = self
        decision.route.source = source.flatMap(IPAddress.init)
        if let address = decision.route.source {
            decision.addresses = [.init(interface: 2, address: address, flags: flags)]
        }
        let verdict = decision.verdict(on: "2001:db8:ffff::7")
        #expect((verdict != .notReachable(.noSource)) == usable, "\(verdict)")
    }

    @Test func `if two links have the same link-local address, that of the outgoing link decides`() {
        var decision = self
        decision.route.source = IPAddress("fe80::1")
        let address = IPAddress("fe80::1")!
        decision.addresses = [
            .init(interface: 3, address: address, flags: 0x40),
            .init(interface: 2, address: address, flags: 0x80),
        ]
        #expect(decision.verdict(on: "fe80::2%2") != .notReachable(.noSource))
        decision.addresses.swapAt(0, 1)
        decision.route.outputInterface = 3
        decision.links.append(
            Link(index: 3, name: "eth1", flags: Self.up, operationalState: Self.operationallyUp)
        )
        #expect(decision.verdict(on: "fe80::2%3") == .notReachable(.noSource))
    }

    @Test func `a link-local destination may have a link-local source`() {
        var decision = self
        decision.route.source = IPAddress("fe80::1%2")
        #expect(decision.verdict(on: "fe80::2%2") != .notReachable(.noSource))
    }

    @Test func `an IPv4 route without a source is not reachable`() {
        var decision = self
        decision.route.source = nil
        #expect(decision.verdict() == .notReachable(.noSource))
    }

    @Test(arguments: [
        ("198.51.100.7", nil, false), ("198.51.100.7", "192.0.2.2", false),
        ("198.51.100.7", "169.254.7.1", true), ("169.254.9.9", nil, true),
        ("169.254.9.9", "192.0.2.2", false),
    ])
    func `a link-local IPv4 source is usable only if the next hop is link-local`(
        destination: String,
        gateway: String?,
        isUsable: Bool
    ) {
        var decision = self
        decision.route.source = IPAddress("169.254.7.7")
        decision.route.gateway = gateway.flatMap(IPAddress.init)
        #expect((decision.verdict(on: destination) != .notReachable(.noSource)) == isUsable)
        decision.route.source = IPAddress("169.253.255.255")
        #expect(decision.verdict(on: destination) != .notReachable(.noSource))
    }

    @Test(arguments: [("192.0.2.1", "198.51.100.7"), ("2001:db8::1", "2001:db8:ffff::7")])
    func `a route for the chosen source depends on the interface of the source, too`(
        source: String,
        destination: String
    ) {
        let answer = RouteAnswer(lookup: .route(route), tableMatch: .route(match))
        func dependsOnOthers(source: IPAddress?) -> Bool {
            let decision = PathDecision(
                query: RouteQuery(IPAddress(destination)!),
                finding: .init(answer: answer, source: source),
                interfaces: InterfaceTable(links: links)
            )
            return decision.addressVerdict.dependsOnOtherInterfaces
        }
        #expect(dependsOnOthers(source: IPAddress(source)))
        #expect(!dependsOnOthers(source: nil))
    }

    @Test func `a path contains the route of established connections if it is another one`() throws {
        var test = self
        test.links.append(
            Link(index: 3, name: "eth1", flags: Self.up, operationalState: Self.operationallyUp)
        )
        var other = route
        other.outputInterface = 3
        let refusal = RouteLookup.refused(errno: EHOSTUNREACH, message: nil)
        let path = try test.path(established: nil)
        let (refused, moved) = try (
            test.path(established: refusal), test.path(established: .route(other))
        )
        #expect(try test.path(established: .route(route)).usesSameRoute(as: path))
        #expect(
            try test.path(established: .route(other), entry: match).usesSameRoute(as: path),
            "another next hop of the same entry"
        )
        #expect(!refused.usesSameRoute(as: path) && !moved.usesSameRoute(as: path))
        #expect(!moved.usesSameRoute(as: refused))
        test.links.removeLast()
        #expect(try !test.path(established: .route(other)).usesSameRoute(as: moved), "the carrier is lost")
    }

    /// - Parameter entry: The table entry that matches for established connections. Default: another one than for
    ///   new ones.
    private func path(established: RouteLookup?, entry: Route? = nil) throws -> NetworkPath {
        var other = match
        other.table = 70
        var answer = route
        answer.source = IPAddress("2001:db8::1")
        let decision = PathDecision(
            query: RouteQuery(IPAddress("2001:db8:ffff::7")!),
            finding: .init(
                answer: RouteAnswer(lookup: .route(answer), tableMatch: .route(match)),
                established: established.map { RouteAnswer(lookup: $0, tableMatch: .route(entry ?? other)) }
            ),
            interfaces: InterfaceTable(links: links)
        )
        #expect(decision.addressVerdict.dependsOnOtherInterfaces == (established != nil))
        return try #require(decision.verdict.path)
    }

    @Test func `one reachable address is enough, and the first in the resolver's order is used`() throws {
        let path = verdict()
        #expect(TargetVerdict([.notReachable(.noRoute), path])?.verdict == path)
        #expect(
            TargetVerdict([.notReachable(.noRoute), .unknown(.lookupFailed)])?.verdict
                == .unknown(.lookupFailed)
        )
        #expect(
            TargetVerdict([.notReachable(.blackhole), .notReachable(.noRoute)])?.verdict
                == .notReachable(.blackhole)
        )
        #expect(TargetVerdict([]) == nil)
        let targetVerdict = try #require(TargetVerdict([.notReachable(.noRoute), path]))
        #expect(targetVerdict.supportsIPv4 && !targetVerdict.supportsIPv6)
    }
}

private struct Unexpected: Error {
    let verdict: PathStatus.Verdict

    init(_ verdict: PathStatus.Verdict) { self.verdict = verdict }
}

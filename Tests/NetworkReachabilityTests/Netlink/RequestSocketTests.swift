internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchNetlink

/// Lookups of routes, in several datagrams and after failures.
@Suite(.needsNetworkNamespaces)
struct RequestSocketTests {
    private let namespace: NetworkNamespace

    init() throws {
        namespace = try NetworkNamespace()
    }

    private static func query(_ index: Int) -> RouteQuery {
        RouteQuery(IPAddress(bytes: [10, 0, 0, UInt8(index)])!)
    }

    /// Returns the errors of the answers; 0 for a route.
    private static func errors(_ answers: [RouteAnswer]) -> [CInt] {
        answers.map { if case .refused(let errno, _) = $0.lookup { errno } else { 0 } }
    }

    @Test func `answers are in the order of the queries`() throws {
        // More than one batch. Every third address has a route, every third a prohibition, and every third no route.
        try namespace.shell(
            """
            for i in $(seq 0 3 198); do
                echo "route add 10.0.0.$i dev lo"
                echo "route add prohibit 10.0.0.$((i + 1))"
            done | ip -batch -
            """
        )
        let answers = try namespace.run {
            Result { try RequestSocket().lookUp((0..<200).map(Self.query)) }
        }.get()
        let noRoute: CInt = 101
        let prohibited: CInt = 13
        #expect(Self.errors(answers) == (0..<200).map { [0, prohibited, noRoute][$0 % 3] })
    }

    @Test func `a lookup succeeds after one whose replies overran the receive buffer`() throws {
        try namespace.ip("route add 10.0.0.7 dev lo")
        let (failure, answers) = try namespace.run {
            Result {
                let socket = try RequestSocket(receiveBufferSize: 1)
                let failure = Result { try socket.lookUp((0..<64).map(Self.query)) }
                return (failure, try socket.lookUp([Self.query(7)]))
            }
        }.get()
        #expect(throws: SystemError.self) { try failure.get() }
        #expect(Self.errors(answers) == [0])
    }

    @Test func `a single interface and its addresses are the same as in the complete tables`() throws {
        try namespace.ip("addr add 192.0.2.1/24 dev lo", "-6 addr add 2001:db8::1/64 dev lo nodad")
        try namespace.ip("link add here0 type veth peer name here1", "addr add 192.0.2.2/24 dev here0")
        let (links, addresses, single) = try namespace.run {
            Result {
                let socket = try RequestSocket()
                let links = try socket.links().elements
                let single = try links.map { link in
                    let ipv4 = try socket.addresses(of: link.index, .ipv4).elements
                    let ipv6 = try socket.addresses(of: link.index, .ipv6).elements
                    return (try socket.link(link.index).elements, ipv4 + ipv6)
                }
                return (links, try socket.addresses().elements, single)
            }
        }.get()
        #expect(links.count >= 3)
        #expect(single.flatMap { $0.0 } == links)
        for (link, read) in zip(links, single) {
            #expect(read.1 == addresses.filter { $0.interface == link.index })
        }
    }

    @Test func `the address of a point-to-point interface is its own, not that of the peer`() throws {
        try namespace.ip("link add here0 type veth peer name here1")
        try namespace.ip("addr add 192.0.2.1 peer 192.0.2.9/32 dev here0")
        try namespace.ip("-6 addr add 2001:db8::1 peer 2001:db8::9/128 dev here0 nodad")
        try namespace.ip("-6 addr add 2001:db8:1::1/64 dev here0 nodad noprefixroute")
        let (addresses, malformed) = try namespace.run {
            Result { try RequestSocket().addresses() }.map { ($0.elements, $0.malformed) }
        }.get()
        #expect(malformed == 0)
        #expect(
            Set(addresses.filter { !$0.address.isLoopback }.map { "\($0.address)/\($0.prefixLength)" })
                == ["192.0.2.1/32", "2001:db8::1/128", "2001:db8:1::1/64"]
        )
        // IFA_F_NOPREFIXROUTE does not fit into the 8 flags of the header.
        let flagged = addresses.filter { $0.flags & 0x200 != 0 }.map { "\($0.address)" }
        #expect(flagged == ["2001:db8:1::1"])
    }

    @Test func `a dump that the kernel ends with an error has no result`() throws {
        // RTM_GETADDR with an `ifaddrmsg` for IPv4 that has a prefix length, which strict checking rejects.
        let header = UInt64(0x0102).littleEndian
        let dump = namespace.run {
            Result {
                try RequestSocket().dump(type: 22, replyType: 20, header: header) { _ in Int?.none }.elements
            }
        }
        let error = #expect(throws: SystemError.self) { try dump.get() }
        let invalidArgument: CInt = 22
        #expect(error?.errno == invalidArgument)
    }

    @Test func `rules that depend on the source address or the port are found among 10,000 others`() throws {
        func selectors() throws -> RuleSelectors {
            try namespace.run { Result { try RequestSocket().ruleSelectors() } }.get()
        }
        try namespace.shell("seq 1 10000 | sed 's/.*/rule add to 10.0.0.7 pref & lookup 70/' | ip -batch -")
        try namespace.ip("rule add ipproto tcp sport 22 lookup 70")
        #expect(try selectors() == [])
        try namespace.ip("-6 rule add from 2001:db8::/32 lookup 70")
        #expect(try selectors() == .ipv6Source)
        try namespace.ip("-6 rule del from 2001:db8::/32 lookup 70")
        try namespace.ip("rule add not from 192.0.2.1 pref 5000 lookup 70")
        #expect(try selectors() == .ipv4Source)
        try namespace.ip("-6 rule add dport 8000-8100 lookup 70")
        #expect(try selectors() == [.ipv4Source, .destinationPort])
        try namespace.ip("-6 rule del dport 8000-8100 lookup 70", "rule add ipproto tcp dport 25 lookup 70")
        #expect(try selectors() == [.ipv4Source, .destinationPort])
    }

    @Test func `an interface that does not exist is empty, and leaves no reply behind`() throws {
        let (link, addresses, links) = try namespace.run {
            Result {
                let socket = try RequestSocket()
                let link = try socket.link(77).elements
                return (link, try socket.addresses(of: 77, .ipv4).elements, try socket.links().elements)
            }
        }.get()
        #expect(link.isEmpty)
        #expect(addresses.isEmpty)
        #expect(links.contains { $0.name == "lo" })
    }
}

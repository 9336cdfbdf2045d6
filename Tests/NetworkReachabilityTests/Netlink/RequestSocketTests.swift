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
}

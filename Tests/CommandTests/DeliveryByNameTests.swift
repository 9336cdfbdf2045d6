internal import NetwatchTestSupport
internal import Testing

/// The built command and service with a name that has an unreachable address, and with a name server that stops
/// responding.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct DeliveryByNameTests {
    private let testbed: VethTestbed
    private let names: ScriptedNameServer
    private let server: ScriptedServer

    init() throws {
        testbed = try VethTestbed()
        names = try ScriptedNameServer(in: testbed.far)
        server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far)
        // Packets to this address are sent, but no host receives them. Both addresses of `two.example` share equally
        // many leading bits with our own address, so the C library keeps the order of the DNS answer (RFC 6724 §5, rule
        // 9).
        try testbed.near.ip("neigh add 192.0.2.3 lladdr 02:00:00:00:00:99 dev near0 nud permanent")
        names.set("two.example", "192.0.2.3", VethTestbed.farAddress)
    }

    private var url: String { "http://two.example:\(server.port)/" }

    private func service(resolvingBy files: ResolverFiles? = nil) async throws -> RunningService {
        try await RunningService(
            in: try ScratchDirectory(),
            namespace: testbed.near,
            resolvingBy: files ?? ResolverFiles()
        )
    }

    @Test func `a request to a name whose first address is dead is delivered at the first attempt`()
        async throws
    {
        let service = try await service()
        #expect(try await service.run("send", url, "-d", "1").errors == ["delivered: HTTP 200"])
        #expect(try await service.queue().first?["attempts"] as? Int == 1)
    }

    @Test func `consecutive requests share a connection`() async throws {
        let service = try await service()
        for _ in 0..<3 {
            #expect(try await service.run("send", url, "-d", "1").errors == ["delivered: HTTP 200"])
        }
        #expect(await server.peers(atLeast: 1).count == 1)
    }

    @Test func `a request without the service also reaches the second address`() async throws {
        let process = try Command.start(
            ["send", "--queue", "never", url, "-d", "1"],
            in: testbed.near,
            resolvingBy: ResolverFiles()
        )
        #expect(try await process.outcome().ending == .exited(0))
        #expect(server.requests.count == 1)
    }

    @Test func `a TCP probe of a name whose first address is dead is valid`() async throws {
        let process = try Command.start(
            ["host", "two.example", "--probe", "tcp:\(server.port)", "--once"],
            in: testbed.near,
            resolvingBy: ResolverFiles()
        )
        let outcome = try await process.outcome()
        #expect(outcome.ending == .exited(0), "\(outcome)")
        #expect(await server.peers(atLeast: 1).count == 1)
    }

    @Test func `a request to another host does not make the service forget names`() async throws {
        names.set("other.example", VethTestbed.farAddress)
        let service = try await service()
        for host in ["two.example", "other.example"] {
            let url = "http://\(host):\(server.port)/"
            #expect(try await service.run("send", url, "-d", "1").errors == ["delivered: HTTP 200"])
        }
        let status = try await service.run("status", "--timeout", "30s").output
        #expect(status.contains { $0.contains("two.example") }, "\(status)")
        #expect(status.contains { $0.contains("other.example") }, "\(status)")
    }

    @Test func `while the name server is silent, requests go over the connection that is open`() async throws
    {
        let files = try ResolverFiles()
        let service = try await service(resolvingBy: files)
        #expect(try await service.run("send", url, "-d", "1").errors == ["delivered: HTTP 200"])
        names.set("two.example", .silence)
        // A change of the file clears the service's name cache.
        try shell("echo '# changed' >>\(files.path(of: "resolv.conf"))")
        for _ in 0..<3 {
            #expect(try await service.run("send", url, "-d", "1").errors == ["delivered: HTTP 200"])
        }
        #expect(Set(server.requests.map(\.connection)) == [1])
    }
}

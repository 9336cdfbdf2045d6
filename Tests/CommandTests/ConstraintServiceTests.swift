internal import NetwatchTestSupport
internal import Testing

/// Constraints and rate limits of the built service, over a real cable.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct ConstraintServiceTests {
    private let testbed: VethTestbed
    private let server: ScriptedServer

    init() throws {
        testbed = try VethTestbed()
        server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far)
    }

    private func service(_ options: String...) async throws -> RunningService {
        try await RunningService(in: try ScratchDirectory(), namespace: testbed.near, options: options)
    }

    private var url: String { server.url }

    @Test func `a request for an unmetered connection waits on an interface that is declared as metered`()
        async throws
    {
        let service = try await service("--metered", "near*")
        let waiting = try await service.run("send", url, "-d", "1", "--only-unmetered")
        #expect(waiting.errors == ["queued: waiting for an unmetered connection"])
        #expect(try await service.run("send", url, "-d", "2").errors == ["delivered: HTTP 200"])
        #expect(server.requests.count == 1)
    }

    @Test func `a request for an unmetered connection is sent over any other interface`() async throws {
        let service = try await service("--metered", "far*")
        let sent = try await service.run("send", url, "-d", "1", "--only-unmetered")
        #expect(sent.errors == ["delivered: HTTP 200"])
    }

    @Test func `a request is sent only over an interface of its kinds`() async throws {
        let service = try await service()
        let waiting = try await service.run("send", url, "-d", "1", "--interface-kind", "wifi,ethernet")
        #expect(
            waiting.errors.count == 1 && waiting.errors[0].hasPrefix("queued: waiting for "),
            "\(waiting.errors)"
        )
        let sent = try await service.run("send", url, "-d", "2", "--interface-kind", "wifi,veth")
        #expect(sent.errors == ["delivered: HTTP 200"])
        #expect(server.requests.count == 1)
    }

    @Test func `the rate of a host limits only the requests to this host`() async throws {
        let service = try await service("--rate", "\(VethTestbed.farAddress)=1/h")
        #expect(try await service.run("send", url, "-d", "1").errors == ["delivered: HTTP 200"])
        let waiting = try await service.run("send", url, "-d", "2")
        #expect(waiting.errors == ["queued: waiting because of a rate limit"])
        let local = try ScriptedServer(in: testbed.near)
        #expect(try await service.run("send", local.url, "-d", "3").errors == ["delivered: HTTP 200"])
        #expect(server.requests.count == 1)
    }

    /// The address over the first cable refuses connections, so the client tries the other one. The kernel's route to
    /// that address leads over the second cable, which is metered.
    @Test func `a request with a constraint uses only the interface that meets it`() async throws {
        let cables = try TwoCableTestbed()
        let names = try ScriptedNameServer(in: cables.far)
        let server = try ScriptedServer(address: "203.0.113.2", in: cables.far)
        names.set("two.example", VethTestbed.farAddress, "203.0.113.2")
        let service = try await RunningService(
            in: try ScratchDirectory(),
            namespace: cables.near,
            resolvingBy: ResolverFiles(),
            options: ["--metered", cables.second.name]
        )
        let url = "http://two.example:\(server.port)/"
        for constraint in [["--only-unmetered"], []] {
            let sent = try await service.run(["send", url, "-d", "1"] + constraint)
            #expect(sent.errors == ["delivered: HTTP 200"])
        }
        #expect(server.peers == [cables.first.source, cables.second.source])
    }
}

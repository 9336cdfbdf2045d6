internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The commands of docs/how-to.md, with a server that can be reached over two cables.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct HowToTests {
    private let page = try! DocumentationPage("docs/how-to.md")
    private let network = try! TwoCableTestbed()
    /// The targets of the requests that the servers have received.
    private let received = Recorder<String>()

    /// Starts a server at the address of the recipes.
    private func server(
        port: UInt16 = 80,
        _ answer: @escaping ScriptedServer.Script = { _ in .respond("") }
    ) throws -> ScriptedServer {
        try ScriptedServer(address: TwoCableTestbed.host, port: port, in: network.far) { [received] request in
            received.record(request.target)
            return answer(request)
        }
    }

    /// Starts the service, and returns it with the code blocks of a recipe.
    private func start(_ recipe: String, blocks count: Int) async throws -> (AdministratedService, [String]) {
        let blocks = page.commands(under: recipe)
        try #require(blocks.count == count)
        let service = try AdministratedService(in: network.near)
        try await service.start()
        return (service, blocks)
    }

    @Test(.enabled(if: access("/usr/sbin/sysctl", X_OK) == 0, "sysctl is not installed"))
    func `a request waits for an uplink that is not metered`() async throws {
        let server = try server()
        defer { server.stop() }
        let (service, blocks) = try await start("Use several uplinks", blocks: 2)
        let path = try await service.run(blocks[0])
        #expect(path.contains { $0.contains("reachable") && $0.contains(network.second.name) }, "\(path)")
        let shown = try await service.run(blocks[1].replacing("wwan0", with: network.second.name))
        #expect(shown.contains { $0.contains("pending") }, "\(shown)")
        #expect(received.values == [])
        // The kernel now prefers the first cable.
        try network.far.ip("link set far1 down")
        try await received.wait { $0 == ["/backup"] }
        try await service.stop()
    }

    @Test func `a request waits until a user has logged in at the portal`() async throws {
        let portal = CaptivePortal()
        let server = try server { portal.answer($0) }
        defer { server.stop() }
        let (service, blocks) = try await start("Send through a captive portal", blocks: 2)
        let shown = try await service.run(blocks[0])
        #expect(shown.contains { $0.contains(CaptivePortal.page) }, "\(shown)")
        #expect(!received.values.contains("/readings"))
        portal.logIn()
        try await service.run(blocks[1])
        try await received.wait { $0.contains("/readings") }
        try await service.stop()
    }

    @Test func `a job sends its result`() async throws {
        let server = try server()
        defer { server.stop() }
        let (service, blocks) = try await start("Run jobs that need the network", blocks: 1)
        try await service.run(blocks[0])
        try await service.run(service.cronCommand("report"))
        try await received.wait { $0 == ["/reports"] }
        try await service.stop()
    }

    @Test func `a job sends an alert only if the host does not respond`() async throws {
        let (host, alerts) = (try server(), try server(port: 8080))
        defer { alerts.stop() }
        let (service, blocks) = try await start("Get alerts", blocks: 1)
        try await service.run(blocks[0])
        let job = try service.cronCommand("check-netwatch")
        #expect(try await service.run(job) == [])
        #expect(try await service.waiting() == [])
        #expect(received.values == [])
        host.stop()
        try await service.run(job)
        try await received.wait { $0 == ["/alerts"] }
        try await service.stop()
    }

    @Test func `a job reports that the service does not run`() async throws {
        let host = try server()
        defer { host.stop() }
        let (service, blocks) = try await start("Get alerts", blocks: 1)
        try await service.run(blocks[0])
        let job = try "exec 2>&1\n\(service.cronCommand("check-netwatch"))"
        #expect(try await service.run(job) == [])
        try await service.stop()
        let printed = try await service.run(job)
        #expect(printed.contains { $0.hasPrefix("error: ") }, "\(printed)")
    }

    @Test func `a request gets its credential`() async throws {
        let server = try server()
        defer { server.stop() }
        let (service, blocks) = try await start("Use a credential", blocks: 1)
        try await service.run(blocks[0].replacing("https://", with: "http://"))
        try await received.wait { $0 == ["/orders"] }
        #expect(server.requests.first?.values(of: "Authorization") == ["Bearer TOKEN"])
        try await service.stop()
    }
}

internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// docs/tutorial.md, with its server at the other end of a virtual cable.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .enabled(if: access("/usr/bin/curl", X_OK) == 0, "curl is not installed"),
    .timeLimit(.minutes(5))
)
struct TutorialTests {
    private let cable = try! VethTestbed()
    private let readings = Recorder<String>()

    /// Starts the server, which records the bodies of readings.
    private func collector() throws -> ScriptedServer {
        try ScriptedServer(address: VethTestbed.farAddress, port: 80, in: cable.far) { [readings] request in
            let body = String(decoding: request.body, as: UTF8.self)
            if request.target == "/readings" { readings.record(body) }
            return .respond("")
        }
    }

    @Test func `every command works, and each reading arrives once and in order`() async throws {
        let blocks = try DocumentationPage("docs/tutorial.md").codeBlocks(in: "sh").map(\.text)
        try #require(blocks.count == 7)
        let server = try collector()
        defer { server.stop() }
        let service = try AdministratedService(in: cable.near)
        try await service.start()
        try await service.run(blocks[0])
        try await service.hasLogged("host `collector` is up")
        let watched = try await service.run(blocks[1])
        #expect(watched.first?.hasPrefix("collector  up") == true, "\(watched)")
        for block in blocks[2...3] { try await service.run(block) }
        try await readings.wait { $0.count == 1 }

        try cable.setCable(connected: false)
        try await service.hasLogged("host `collector` is down (local)")
        for _ in 1...2 { try await service.run(service.cronCommand("send-reading")) }
        let offline = try await service.run(blocks[4])
        #expect(offline.count(where: { $0.hasSuffix("  not reachable: no carrier") }) == 2, "\(offline)")
        #expect(offline.contains(#"netwatch_host_outage{cause="local",host="collector"} 1"#), "\(offline)")
        let restarted = try await service.run(blocks[5])
        #expect(restarted.count(where: { $0.hasPrefix("reading-") }) == 3, "\(restarted)")

        try cable.setCable(connected: true)
        try await readings.wait { $0.count == 3 }
        try await service.hasLogged("host `collector` is up")
        let online = try await service.run(blocks[6])
        #expect(online.contains { $0.contains("own link down for") }, "\(online)")
        try await service.stop()
        // Each reading begins with its time.
        #expect(readings.values.count == 3 && readings.values == readings.values.sorted())
    }
}

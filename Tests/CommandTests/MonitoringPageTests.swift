internal import NetwatchTestSupport
internal import Testing

/// The commands of docs/monitoring.md.
@Suite(.timeLimit(.minutes(5))) struct MonitoringPageTests {
    @Test func `every command prints the history of the hosts`() async throws {
        let blocks = try DocumentationPage("docs/monitoring.md").commands(under: "History")
        try #require(blocks.count == 1)
        let service = try AdministratedService()
        let configuration = "[[host]]\nname = \"api\"\nroute = \"127.0.0.1\"\n"
        try service.directory.write(Array(configuration.utf8), to: "etc/netwatch/netwatch.toml")
        try await service.start()
        try await service.hasLogged("host `api` is up")
        let output = try await service.run(blocks[0])
        #expect(output.count(where: { $0.hasPrefix("api  up") }) == 2, "\(output)")
        let report = try Command.json(try #require(output.last))
        #expect(report["name"] as? String == "api")
        try await service.stop()
    }
}

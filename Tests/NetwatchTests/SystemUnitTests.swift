internal import NetwatchTestSupport
internal import Testing

@testable internal import netwatch

/// The systemd unit of the service, as commands see it.
@Suite struct SystemUnitTests {
    @Test func `an installed unit is started by systemctl`() throws {
        let directory = try ScratchDirectory()
        let directories = [directory.file("none"), directory.path]
        #expect(!SystemUnit.exists(in: directories))
        _ = try directory.write([], to: "netwatch.service")
        #expect(SystemUnit.exists(in: directories))
        #expect(SystemUnit.hint(isInstalled: true) == "`systemctl start netwatch` starts the service")
        #expect(SystemUnit.hint(isInstalled: false) == "`netwatch serve` starts the service")
    }
}

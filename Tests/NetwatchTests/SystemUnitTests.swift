internal import NetwatchService
internal import NetwatchTestSupport
internal import Testing

@testable internal import netwatch

/// The systemd unit of the service, as commands see it.
@Suite struct SystemUnitTests {
    private static let systemSocket = "/run/netwatch/netwatch.sock"
    private static let systemState = "/var/lib/netwatch"

    private func socketHint(
        _ socket: String,
        isInstalled: Bool,
        _ environment: [String: String] = [:]
    ) -> String {
        let paths = ServicePaths(environment: environment, isRoot: true)
        return SystemUnit.startHint(
            socket: ArgumentBytes(socket.utf8),
            isInstalled: isInstalled,
            paths: paths
        )
    }

    @Test func `systemctl is proposed only for the socket of an installed unit`() {
        let (unit, serve) = (
            "`systemctl start netwatch` starts the service", "`netwatch serve` starts the service"
        )
        let other = "`netwatch serve --socket '/s'` starts the service"
        #expect(socketHint(Self.systemSocket, isInstalled: true) == unit)
        #expect(socketHint(Self.systemSocket, isInstalled: false) == serve)
        #expect(socketHint("/s", isInstalled: true, ["NETWATCH_SOCKET": "/s"]) == serve)
        for isInstalled in [true, false] { #expect(socketHint("/s", isInstalled: isInstalled) == other) }
    }

    @Test func `systemctl is proposed only for the directory of an installed unit`() {
        let paths = ServicePaths(environment: ["STATE_DIRECTORY": "/d"], isRoot: true)
        func hint(_ path: String, isInstalled: Bool) -> String {
            SystemUnit.startHint(stateDirectory: path, isInstalled: isInstalled, paths: paths)
        }
        #expect(hint(Self.systemState, isInstalled: true) == "`systemctl start netwatch` starts the service")
        #expect(
            hint(Self.systemState, isInstalled: false)
                == "`netwatch serve --state-dir '/var/lib/netwatch'` starts the service"
        )
        #expect(hint("/d", isInstalled: true) == "`netwatch serve` starts the service")
        #expect(hint("/e", isInstalled: true) == "`netwatch serve --state-dir '/e'` starts the service")
    }

    @Test func `the unit is searched for in its directories`() throws {
        let directory = try ScratchDirectory()
        let directories = [directory.file("none"), directory.path]
        #expect(!SystemUnit.exists(in: directories))
        _ = try directory.write([], to: "netwatch.service")
        #expect(SystemUnit.exists(in: directories))
    }

    @Test(arguments: [
        ("failed", "exit-code", true), ("activating", "signal", true), ("activating", "success", false),
        ("inactive", "success", false), ("inactive", "exit-code", false),
    ]) func `a unit that has failed is a problem of the service`(
        activity: String,
        result: String,
        hasFailed: Bool
    ) throws {
        let properties = "Result=\(result)\nActiveState=\(activity)\n"
        let unit = try #require(UnitState(properties: properties))
        let finding = ServiceChecks.stopped(ServiceSummary(state: .notRunning, socket: "/s"), unit: unit)
        let expected: DoctorFinding.Result = hasFailed ? .problem : .warning
        #expect(finding.result == expected)
        #expect(finding.message.hasSuffix(": the unit netwatch.service has failed (\(result))") == hasFailed)
        #expect(finding.advice?.contains("`journalctl -u netwatch`") == hasFailed)
    }

    /// A program that prints the state of a unit, and then runs commands of the shell.
    private static func query(_ commands: String = "") -> [String] {
        ["/bin/sh", "-c", "printf 'ActiveState=%s\\nResult=%s\\n' failed exit-code; \(commands)"]
    }

    @Test func `the state is unknown if the query fails`() async {
        #expect(await UnitState.query(Self.query())?.hasFailed == true)
        #expect(await UnitState.query(Self.query("exit 1")) == nil)
        #expect(await UnitState.query(["/bin/sh", "-c", "true"]) == nil)
        #expect(await UnitState.query(["/nonexistent/systemctl"]) == nil)
        let summary = ServiceSummary(state: .notRunning, socket: "/s")
        #expect(ServiceChecks.stopped(summary, unit: nil).result == .warning)
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["trap '' TERM; sleep 300", "yes"])
    func `a query that does not end, or whose output does not end, is ended after the timeout`(
        commands: String
    ) async {
        #expect(await UnitState.query(Self.query(commands), timeout: .milliseconds(100)) == nil)
    }
}

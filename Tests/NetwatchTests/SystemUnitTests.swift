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

    @Test func `the state is unknown if the query fails`() {
        let query = "printf 'ActiveState=%s\\nResult=%s\\n' failed exit-code"
        #expect(UnitState.query(query)?.hasFailed == true)
        #expect(UnitState.query("false") == nil)
        #expect(UnitState.query("true") == nil)
        #expect(UnitState.query("/nonexistent/systemctl") == nil)
        let summary = ServiceSummary(state: .notRunning, socket: "/s")
        #expect(ServiceChecks.stopped(summary, unit: nil).result == .warning)
    }
}

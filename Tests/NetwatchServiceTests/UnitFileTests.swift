internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

private let analyze = "/usr/bin/systemd-analyze"

@Suite(.enabled(if: access(analyze, X_OK) == 0, "systemd-analyze is not installed"))
struct UnitFileTests {
    private static func path(_ unit: String) -> String {
        URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent()
            .appendingPathComponent("../../systemd/\(unit)")
            .standardizedFileURL.path
    }

    /// Copies a unit, and replaces its program by one that exists, which `systemd-analyze verify` requires.
    private func copy(_ unit: String, to directory: ScratchDirectory) throws -> String {
        let text = try String(contentsOfFile: Self.path(unit), encoding: .utf8)
        let installed = text.replacing("/usr/bin/netwatch ", with: "/bin/true ")
        let copy = directory.file(unit)
        try installed.write(toFile: copy, atomically: true, encoding: .utf8)
        return copy
    }

    @Test(arguments: [
        ["netwatch.service"], ["netwatch-wait-online.service"],
        ["netwatch.service", "netwatch-netlink.socket"],
        ["netwatch.service", "netwatch.socket"], ["netwatch-failed.target"],
        ["netwatch-online.target", "netwatch-wait-online.service"],
    ])
    func `systemd accepts every line of the units`(units: [String]) async throws {
        let directory = try ScratchDirectory()
        let copies = try units.map { try copy($0, to: directory) }
        // Without the option, the man page must be installed.
        let options = ["verify", "--recursive-errors=no", "--man=no"]
        let outcome = try await Subprocess(analyze, options + copies).outcome()
        #expect(outcome.output + outcome.errors == [])
        #expect(outcome.ending == .exited(0))
    }

    @Test(arguments: [
        ("netwatch.service", "serve"), ("netwatch-wait-online.service", "wait --timeout 120s"),
    ])
    func `the units run the installed command`(unit: String, arguments: String) throws {
        let text = try String(contentsOfFile: Self.path(unit), encoding: .utf8)
        #expect(text.contains("\nExecStart=/usr/bin/netwatch \(arguments)\n"))
    }

    @Test(arguments: [
        "netwatch.service", "netwatch-netlink.socket", "netwatch-wait-online.service",
        "netwatch-online.target", "netwatch.socket", "netwatch-failed.target",
    ])
    func `the documentation explains every directive of the units`(unit: String) throws {
        let text = try String(contentsOfFile: Self.path(unit), encoding: .utf8)
        let documentation = try String(contentsOfFile: Self.path("README.md"), encoding: .utf8)
        let directives = Set(text.matches(of: /(?m)^([A-Za-z]+)=/).map { String($0.1) })
        let unexplained = directives.subtracting(["Description", "Documentation"]).filter {
            !documentation.contains("`\($0)")
        }
        #expect(!directives.isEmpty)
        #expect(unexplained == [])
    }

    @Test(arguments: [("netwatch.service", "16"), ("netwatch-wait-online.service", "13")])
    func `the units keep the documented exposure level`(unit: String, threshold: String) async throws {
        let arguments = ["security", "--offline=true", "--threshold=\(threshold)", Self.path(unit)]
        let outcome = try await Subprocess(analyze, arguments).outcome()
        #expect(outcome.ending == .exited(0), "\(outcome.output)")
    }
}

internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

private let analyze = "/usr/bin/systemd-analyze"

@Suite(.enabled(if: access(analyze, X_OK) == 0, "systemd-analyze is not installed"))
struct UnitFileTests {
    private static let unit = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent()
        .appendingPathComponent("../../systemd/netwatch.service")
        .standardizedFileURL.path

    @Test func `systemd understands every line of the unit`() async throws {
        // A copy, because `verify` wants the program to exist.
        let directory = try ScratchDirectory()
        let copy = directory.file("netwatch.service")
        let text = try String(contentsOfFile: Self.unit, encoding: .utf8)
        #expect(text.contains("\nExecStart=/usr/bin/netwatch serve\n"))
        let installed = text.replacing("/usr/bin/netwatch ", with: "/bin/true ")
        try installed.write(toFile: copy, atomically: true, encoding: .utf8)
        let outcome = try await Subprocess(analyze, ["verify", "--recursive-errors=no", copy]).outcome()
        #expect(outcome.output + outcome.errors == [])
        #expect(outcome.ending == .exited(0))
    }

    @Test func `the unit stays as tight as its README says`() async throws {
        let arguments = ["security", "--offline=true", "--threshold=15", Self.unit]
        let outcome = try await Subprocess(analyze, arguments).outcome()
        #expect(outcome.ending == .exited(0), "\(outcome.output)")
    }
}

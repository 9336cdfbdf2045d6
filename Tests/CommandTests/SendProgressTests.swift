internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// What `netwatch send --wait` shows while it waits.
@Suite(
    .enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) is not installed"),
    .timeLimit(.minutes(5))
)
struct SendProgressTests {
    /// Returns the output of a command on a terminal that waits for a request for 5 s.
    private func output(on terminal: String) async throws -> String {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let send = "\(Command.path) send http://127.0.0.1:1/ --wait=5s --socket \(service.socket)"
        return try shell("TERM=\(terminal) script -qec '\(send)' /dev/null </dev/null || echo status $?")
    }

    @Test func `a line on the terminal shows the reason, and is cleared at the end`() async throws {
        let output = try await output(on: "xterm")
        let line = "\rqueued: paused\u{1B}[J\r"
        let end = try #require(output.range(of: "\r\u{1B}[Jqueued: paused"), "\(output)")
        #expect(output[..<end.lowerBound].contains(line), "\(output)")
        #expect(output.hasSuffix("status 75\n"), "\(output)")
    }

    @Test func `a terminal that cannot rewrite a line shows only the result`() async throws {
        let output = try await output(on: "dumb")
        #expect(output.ranges(of: "queued: paused").count == 1 && !output.contains("waiting"), "\(output)")
        #expect(!output.contains("\u{1B}"), "\(output)")
    }
}

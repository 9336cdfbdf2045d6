internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The colours of the commands' output and messages.
@Suite(.timeLimit(.minutes(5))) struct ColorCommandTests {
    private static let green = "\u{1B}[32mreachable\u{1B}[0m"

    @Test func `--color decides about output and messages`() async throws {
        let plain = try await Command.run("host", "127.0.0.1", "--once")
        #expect(plain.output.first?.contains("\u{1B}") == false, "\(plain.output)")
        let colored = try await Command.run("host", "127.0.0.1", "--once", "--color", "always")
        #expect(colored.output.first?.contains(Self.green) == true, "\(colored.output)")
        let json = try await Command.run("host", "127.0.0.1", "--once", "--color", "always", "-f", "json")
        #expect(json.output.first?.contains("\u{1B}") == false, "\(json.output)")
        let failed = try await Command.run("history", "--color", "always", "--socket", "/no/such/socket")
        #expect(
            failed.errors.first?.hasPrefix("\u{1B}[31merror:\u{1B}[0m no service") == true,
            "\(failed.errors)"
        )
        let wrong = try await Command.run("host", "--color", "red")
        #expect(wrong.ending == .exited(64), "\(wrong.errors)")
    }

    @Test(
        .enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) is not installed"),
        arguments: [
            ("TERM=xterm", true), ("TERM=dumb", false), ("TERM=xterm NO_COLOR=1", false),
        ]
    )
    func `on a terminal, states have colours unless a variable prevents it`(
        variables: String,
        hasColors: Bool
    ) throws {
        let command = "env -u NO_COLOR -u CLICOLOR_FORCE \(variables) \(Command.path) host 127.0.0.1 --once"
        let output = try shell("script -qec '\(command)' /dev/null </dev/null")
        #expect(output.contains(Self.green) == hasColors && output.contains("reachable"), "\(output)")
    }
}

internal import NetwatchTestSupport
internal import Testing

/// `netwatch help`, `--help` and `--version`.
@Suite(.timeLimit(.minutes(5))) struct HelpCommandTests {
    @Test func `help and version go to standard output`() async throws {
        let help = try await Command.run("--help")
        #expect(help.ending == .exited(0) && help.errors.isEmpty)
        #expect(help.output.contains { $0.contains("netwatch send URL") })
        let version = try await Command.run("--version")
        #expect(version.ending == .exited(0) && version.output.count == 1)
        #expect(version.output.first?.wholeMatch(of: /\d+\.\d+\.\d+/) != nil)
    }

    @Test func `help on a subcommand of queue can be asked in both orders`() async throws {
        let usual = try await Command.run("help", "queue", "list")
        let other = try await Command.run("queue", "help", "list")
        #expect(usual.ending == .exited(0) && usual.output.contains { $0.contains("queue list") })
        #expect(other.ending == .exited(0) && other.output == usual.output)
    }

    @Test(arguments: [["help", "foo"], ["help", "queue", "lst"], ["help", "host", "list"]])
    func `help for an unknown command is a wrong argument`(arguments: [String]) async throws {
        let result = try await Command.start(arguments).outcome()
        #expect(result.ending == .exited(64) && result.output.isEmpty)
        #expect(result.errors.first == "error: unknown command `\(arguments.last!)`")
    }

    @Test(arguments: [
        ["help"], ["help", "queue"], ["help", "queue", "list"], ["help", "config", "check"],
        ["help", "config", "show"], ["help", "config", "default"],
    ])
    func `help for a command is printed`(arguments: [String]) async throws {
        let result = try await Command.start(arguments).outcome()
        #expect(result.ending == .exited(0) && !result.output.isEmpty && result.errors.isEmpty)
    }
}

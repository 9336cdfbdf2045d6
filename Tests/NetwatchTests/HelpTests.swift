internal import ArgumentParser
internal import Testing

@testable internal import netwatch

/// The texts of `--help`, from which the man pages are generated.
@Suite struct HelpTests {
    /// A man page on a terminal of 80 columns indents its text by 7, and `--help` does not indent it.
    private static let width = 73

    /// All commands.
    private func commands(below command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
        [command] + command.configuration.subcommands.flatMap(commands)
    }

    @Test func `the examples of each command fit into a line, so that they can be pasted`() {
        for command in commands(below: Netwatch.self) {
            let examples = command.configuration.discussion.split(separator: "\n\n").first ?? ""
            for line in examples.split(separator: "\n") { #expect(line.count <= Self.width, "\(line)") }
        }
    }

    /// The commands without subcommands.
    private func leaves(of command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
        let subcommands = command.configuration.subcommands
        return subcommands.isEmpty ? [command] : subcommands.flatMap(leaves)
    }

    @Test func `the help of each command begins with examples and lists the exit statuses`() {
        let commands = leaves(of: Netwatch.self)
        #expect(commands.count > 20)
        for command in commands {
            let paragraphs = command.configuration.discussion.split(separator: "\n\n")
            #expect(paragraphs.first?.hasPrefix("netwatch ") == true, "\(command)")
            #expect(paragraphs.contains { $0.contains("Exit status") }, "\(command)")
        }
    }
}

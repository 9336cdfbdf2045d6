internal import ArgumentParser
internal import NetwatchTestSupport
internal import Testing

@testable internal import netwatch

/// The commands in the sentences and tables of the documentation. `DocumentedCommandTests` runs those in code blocks.
@Suite struct InlineCommandTests {
    /// Values for the placeholders that are not valid values themselves.
    private static let values = ["COMMAND": "host", "URL": "https://api.example.com/"]

    /// Returns the arguments of each command on a page, without the brackets of optional arguments.
    private func commands(on page: DocumentationPage) -> [[String]] {
        page.text.matches(of: /`netwatch\s([^`]+)`/).map { match in
            match.1.split(whereSeparator: \.isWhitespace).map { word in
                let name = word.filter { !"[]…".contains($0) }
                return Self.values[name] ?? name
            }
        }
    }

    /// Whether the words are only the name of a command or of a subcommand.
    private func isName(_ words: [String]) -> Bool {
        var command: any ParsableCommand.Type = Netwatch.self
        for word in words {
            guard let next = RootArguments.subcommand(word, of: command) else { return false }
            command = next
        }
        return true
    }

    /// Returns why the parser refuses a command; `nil` if it does not. The text may leave out values and arguments.
    private func refusal(of words: [String]) -> String? {
        if isName(words) { return nil }
        // Without a terminal, `--all` requires `--yes`.
        let arguments = words + (words.contains("--all") ? ["--yes"] : [])
        do {
            _ = try Netwatch.parseAsRoot(try RootArguments.expand(arguments))
            return nil
        } catch {
            let message = Netwatch.message(for: error)
            let isAccepted = Netwatch.exitCode(for: error).isSuccess || message.hasPrefix("Missing ")
            return isAccepted ? nil : "\(words): \(message)"
        }
    }

    @Test func `the parser accepts every command in the text of the documentation`() throws {
        let pages = try DocumentationPage.all().filter { $0.path != "CHANGELOG.md" }
        let found = pages.map { (path: $0.path, commands: commands(on: $0)) }
        #expect(found.reduce(0) { $0 + $1.commands.count } > 100)
        for (path, commands) in found {
            #expect(commands.compactMap(refusal) == [], "\(path)")
        }
    }

    @Test(arguments: [
        ["frobnicate"], ["queue", "lst"], ["queue", "list", "--sate", "held"],
        ["queue", "list", "--state", "waiting"], ["queue", "retry", "ID", "--all"], ["status", "HOST"],
    ])
    func `a command with an error is refused`(words: [String]) {
        #expect(refusal(of: words) != nil)
    }
}

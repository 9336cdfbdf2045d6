internal import ArgumentParser

/// Changes the arguments before they are parsed: a bare host becomes `host HOST`. An unknown command is reported with
/// the most similar known command.
enum RootArguments {
    static func expand(_ arguments: [String]) throws(CommandError) -> [String] {
        guard let first = arguments.first, !first.hasPrefix("-"), !commands.contains(first) else {
            switch arguments.first {
            case "help": try requireKnown(arguments.dropFirst())
            case "send": return WaitLimit.expanding(arguments)
            case "queue"? where arguments.dropFirst().first == "help":
                return try expand(["help", "queue"] + arguments.dropFirst(2))
            case "queue": try requireKnown(arguments.prefix(2))
            default: break
            }
            return arguments
        }
        if first.contains(".") || first.contains(":") || first == "localhost" { return ["host"] + arguments }
        throw unknown(first, among: commands)
    }

    /// Checks the names of a command and its subcommand before the parser runs. With `--help` after an unknown name,
    /// the parser would print the help of the last known command and exit with 0.
    private static func requireKnown(_ names: ArraySlice<String>) throws(CommandError) {
        var command: any ParsableCommand.Type = Netwatch.self
        // The parser adds `help` itself.
        guard names.first != "help" else { return }
        for name in names.prefix(while: { !$0.hasPrefix("-") }) {
            let subcommands = command.configuration.subcommands
            guard let next = subcommands.first(where: { $0.configuration.commandName == name }) else {
                throw unknown(name, among: subcommands.compactMap { $0.configuration.commandName })
            }
            command = next
        }
    }

    private static func unknown(_ name: String, among commands: [String]) -> CommandError {
        CommandError(
            .usage,
            "unknown command \(Printer.quoted(name))",
            hint: hint(for: name, among: commands)
        )
    }

    static let commands =
        Netwatch.configuration.subcommands.map { $0.configuration.commandName ?? "" } + ["help"]

    private static func hint(for word: String, among commands: [String]) -> String {
        if commands.isEmpty { return "this command has no subcommands" }
        let nearest = commands.min { distance(word, $0) < distance(word, $1) }
        guard let nearest, distance(word, nearest) <= 2 else {
            return "accepted: \(commands.map { "`\($0)`" }.joined(separator: ", "))"
        }
        return "did you mean `\(nearest)`?"
    }

    /// Returns the Damerau–Levenshtein distance (optimal string alignment): the number of single-letter edits and swaps
    /// of adjacent letters.
    static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        var rows = [Array(0...right.count)]
        for i in 1...max(1, left.count) where !left.isEmpty {
            rows.append([i] + Array(repeating: 0, count: right.count))
            for j in 1...max(1, right.count) where !right.isEmpty {
                let substitution = rows[i - 1][j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1)
                rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, substitution)
                if i > 1, j > 1, left[i - 1] == right[j - 2], left[i - 2] == right[j - 1] {
                    rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
                }
            }
        }
        return rows[left.count][right.count]
    }
}

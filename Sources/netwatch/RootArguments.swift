internal import ArgumentParser

/// Preprocesses the arguments: a bare host becomes `host HOST`, and an unknown command is reported with the most
/// similar known one.
enum RootArguments {
    static func expand(_ arguments: [String]) throws(CommandError) -> [String] {
        guard let first = arguments.first, !first.hasPrefix("-"), !commands.contains(first) else {
            return arguments.first == "send" ? WaitLimit.expanding(arguments) : arguments
        }
        if first.contains(".") || first.contains(":") || first == "localhost" { return ["host"] + arguments }
        throw CommandError(.usage, "unknown command `\(first)`", hint: hint(for: first))
    }

    static let commands =
        Netwatch.configuration.subcommands.map { $0.configuration.commandName ?? "" } + ["help"]

    private static func hint(for word: String) -> String {
        let nearest = commands.min { distance(word, $0) < distance(word, $1) }
        guard let nearest, distance(word, nearest) <= 2 else {
            return "accepted: \(commands.map { "`\($0)`" }.joined(separator: ", "))"
        }
        return "did you mean `\(nearest)`?"
    }

    /// Returns the Damerau–Levenshtein distance (optimal string alignment): single-letter edits and swaps of adjacent
    /// letters.
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

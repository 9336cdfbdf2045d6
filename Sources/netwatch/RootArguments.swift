internal import ArgumentParser
internal import NetwatchService
internal import NetworkReachability

/// Changes the arguments before they are parsed: a bare host becomes `host HOST`. An unknown command is reported with
/// the most similar known command.
enum RootArguments {
    static func expand(_ arguments: [String]) throws(CommandError) -> [String] {
        guard let first = arguments.first, !first.hasPrefix("-") else { return arguments }
        if first == "help" {
            try requireKnown(arguments.dropFirst())
            return arguments
        }
        guard let command = subcommand(first, of: Netwatch.self) else {
            if first.contains(".") || first.contains(":") || first == "localhost" {
                return ["host"] + arguments
            }
            throw unknown(first, of: Netwatch.self)
        }
        if command == SendCommand.self { return WaitLimit.expanding(arguments) }
        guard !command.configuration.subcommands.isEmpty else { return arguments }
        if arguments.dropFirst().first == "help" {
            return try expand(["help", first] + arguments.dropFirst(2))
        }
        try requireKnown(arguments.prefix(2))
        return arguments
    }

    /// Checks the names of a command and its subcommand before the parser runs. With `--help` after an unknown name,
    /// the parser would print the help of the last known command and exit with 0.
    private static func requireKnown(_ names: ArraySlice<String>) throws(CommandError) {
        var command: any ParsableCommand.Type = Netwatch.self
        // The parser adds `help` itself.
        guard names.first != "help" else { return }
        for name in names.prefix(while: { !$0.hasPrefix("-") }) {
            guard let next = subcommand(name, of: command) else { throw unknown(name, of: command) }
            command = next
        }
    }

    static func subcommand(
        _ name: String,
        of command: any ParsableCommand.Type
    ) -> (any ParsableCommand.Type)? {
        command.configuration.subcommands.first { $0.configuration.commandName == name }
    }

    private static func unknown(_ name: String, of command: any ParsableCommand.Type) -> CommandError {
        CommandError(.usage, "unknown command \(Printer.quoted(name))", hint: hint(for: name, of: command))
    }

    // MARK: Hints

    /// Names that other programs use, or that the library uses, for a subcommand of `queue`.
    private static let synonyms = ["cancel": "drop", "delete": "drop", "prune": "drop", "remove": "drop"]

    /// Returns the commands one level down that have this name or synonym, such as `netwatch queue list` for `list`.
    private static func nestedCommands(_ word: String, of command: any ParsableCommand.Type) -> [String] {
        let name = synonyms[word] ?? word
        return command.configuration.subcommands.filter { subcommand(name, of: $0) != nil }.map {
            "`netwatch \($0.configuration.commandName ?? "") \(name)`"
        }
    }

    private static func hint(for word: String, of command: any ParsableCommand.Type) -> String {
        var names = command.configuration.subcommands.compactMap { $0.configuration.commandName }
        if names.isEmpty { return "this command has no subcommands" }
        let isRoot = command == Netwatch.self
        if isRoot { names.append("help") }
        if let name = synonyms[word], names.contains(name) { return "did you mean `\(name)`?" }
        let nested = nestedCommands(word, of: command)
        if !nested.isEmpty { return "did you mean \(nested.joined(separator: " or "))?" }
        if let name = NameSuggestion.name(for: word, among: names) { return "did you mean `\(name)`?" }
        let accepted = "accepted: \(names.map { "`\($0)`" }.joined(separator: ", "))"
        guard isRoot, (try? NetworkHost(validating: word)) != nil else { return accepted }
        return "\(accepted); to watch a host of this name, use `netwatch host \(word)`"
    }
}

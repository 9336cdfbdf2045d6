internal import ArgumentParser
internal import ClientCore
internal import Glibc
internal import NetwatchService
internal import NetworkReachability

/// The root command.
struct Netwatch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "Watch whether hosts are reachable, and deliver HTTP requests when they are.",
        discussion: """
            netwatch example.com             watch whether a host is reachable
            netwatch monitor                 show changes in the network
            netwatch status                  show the network, queue and service
            netwatch history                 show uptime and outages of the hosts
            netwatch wait                    wait until this machine is online
            netwatch send URL -d @order.json deliver a request now, or when online
            netwatch queue list              list waiting and finished requests
            netwatch queue retry ID          try a failed request again
            netwatch serve                   run the service in the foreground
            netwatch config check            check the configuration of the service
            netwatch doctor                  check this machine and the service

            A first argument with a dot or a colon, or `localhost`, is short for `host ARGUMENT`.

            Exit status: 0 yes, 1 no, 2 unknown or failed, 64 wrong arguments, 69 service not running, \
            75 service busy or request not finished, 77 permission denied, 78 the queue's store, the configuration \
            or libcurl is unusable.

            Man pages, such as netwatch-send(1), describe the commands. The Debian package installs further pages in \
            /usr/share/doc/netwatch.
            """,
        version: NetwatchVersion.current,
        subcommands: [
            HostCommand.self, MonitorCommand.self, StatusCommand.self, WaitCommand.self,
            HistoryCommand.self, SendCommand.self, QueueCommand.self, ServeCommand.self,
            ConfigCommand.self, DoctorCommand.self,
        ]
    )
}

@main
enum Main {
    static func main() async {
        Printer.fillStandardDescriptors()
        // libdispatch asks for nice values that an unprivileged process cannot have, and would log each refusal. It
        // reads the variable before its first message.
        setenv("LIBDISPATCH_LOG", "NO", 0)
        // Without the signal, write(2) reports a closed pipe as EPIPE, which `Printer` handles.
        signal(SIGPIPE, SIG_IGN)
        SignalWatch.endProcess1BySignals()
        exit(await run(Arguments.exact()))
    }

    private static func run(_ arguments: [String]) async -> CInt {
        do {
            var command = try Netwatch.parseAsRoot(try RootArguments.expand(arguments))
            try Arguments.requireText(in: command, arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return ExitStatus.yes.rawValue
        } catch {
            return report(error, arguments)
        }
    }

    /// Returns the command that shows the help for these arguments.
    private static func help(for arguments: [String]) -> String {
        let expanded = (try? RootArguments.expand(arguments)) ?? []
        var names: [String] = []
        var command: any ParsableCommand.Type = Netwatch.self
        for argument in expanded {
            guard let next = RootArguments.subcommand(argument, of: command) else { break }
            names.append(argument)
            command = next
        }
        return names.isEmpty ? "netwatch --help" : "netwatch help " + names.joined(separator: " ")
    }

    /// Prints an error in the common format and returns the exit status.
    private static func report(_ error: any Error, _ arguments: [String]) -> CInt {
        if let error = error as? CommandError {
            Printer.error(error.message, hint: error.hint)
            return error.status.rawValue
        }
        if let code = error as? ExitCode { return code.rawValue }
        let code = Netwatch.exitCode(for: error)
        // Requests for help and for the version are thrown as errors too.
        if code.isSuccess {
            Printer.data(Netwatch.fullMessage(for: error))
        } else if code == .validationFailure {
            Printer.error(
                ParserMessage.restyled(Netwatch.message(for: error), arguments),
                hint: "`\(help(for: arguments))` lists the accepted arguments"
            )
        } else {
            Printer.error("\(error)")
            return ExitStatus.unknown.rawValue
        }
        return code.rawValue
    }
}

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
    private static let synonyms = [
        "delete": "cancel", "drop": "cancel", "prune": "cancel", "remove": "cancel",
    ]

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

internal import ArgumentParser
internal import Glibc

/// The root command.
struct Netwatch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "Watch whether hosts can be reached, and deliver requests once they can.",
        discussion: """
            netwatch example.com             watch the way to a host
            netwatch monitor                 show what changes in the network
            netwatch status                  show how things are
            netwatch wait                    wait until this machine is online
            netwatch send URL -d @order.json deliver a request now, or as soon as the network is back
            netwatch queue list              show what waits and what became of the rest
            netwatch queue retry ID          try what was given up anew
            netwatch serve                   run the service in the foreground

            A first argument with a dot or a colon, or `localhost`, is taken as `host ARGUMENT`.

            Exit status: 0 yes, 1 no, 2 could not tell, 64 wrong arguments, 69 service not running, \
            75 not over yet, 77 not permitted, 78 the queue's store cannot be used.
            """,
        version: "0.1.0",
        subcommands: [
            HostCommand.self, MonitorCommand.self, StatusCommand.self, WaitCommand.self,
            SendCommand.self, QueueCommand.self, ServeCommand.self,
        ]
    )
}

@main
enum Main {
    static func main() async {
        Printer.fillStandardDescriptors()
        // A closed pipe is detected by the error of write(2), see Printer.
        signal(SIGPIPE, SIG_IGN)
        exit(await run(Array(CommandLine.arguments.dropFirst())))
    }

    private static func run(_ arguments: [String]) async -> CInt {
        do {
            var command = try Netwatch.parseAsRoot(try RootArguments.expand(arguments))
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
        let command = expanded.first.flatMap { RootArguments.commands.contains($0) ? $0 : nil }
        return command.map { "netwatch help \($0)" } ?? "netwatch --help"
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
                Netwatch.message(for: error),
                hint: "`\(help(for: arguments))` shows what can be given"
            )
        } else {
            Printer.error("\(error)")
            return ExitStatus.unknown.rawValue
        }
        return code.rawValue
    }
}

internal import ArgumentParser
internal import ClientCore
internal import Glibc

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

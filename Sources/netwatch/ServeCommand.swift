internal import ArgumentParser
internal import Glibc
internal import Logging
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch serve` command.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the service in the foreground.",
        discussion: """
            netwatch serve
            netwatch serve --state-dir ./state --socket ./netwatch.sock

            STATE_DIRECTORY, RUNTIME_DIRECTORY and NOTIFY_SOCKET of a service manager are honoured. SIGTERM \
            and SIGINT end it; what is being sent is waited for, for 3 s, and whatever is not delivered is kept.

            Exit status: 0 ended by a signal, 2 the store is locked or the disk failed, or the socket cannot \
            be had, 64 wrong arguments, 78 the store is damaged, another program's or a newer netwatch's, or was \
            removed, moved or replaced while the service ran: starting again does not help.
            """
    )

    @Option(help: "Where the queue is kept. Default $STATE_DIRECTORY, else /var/lib/netwatch or XDG's.")
    var stateDir: String?

    @Option(
        help:
            "The control socket. Default $NETWATCH_SOCKET, else in $RUNTIME_DIRECTORY, /run/netwatch or XDG's."
    )
    var socket: String?

    @Option(help: "What is logged: \(Logger.Level.names).", transform: Logger.Level.named)
    var logLevel = Logger.Level.info

    mutating func run() async throws {
        let paths = ServicePaths()
        let socket = socket ?? paths.socket
        try SocketPath.requireUsable(socket)
        let daemon = NetwatchDaemon(
            configuration: .init(
                stateDirectory: stateDir ?? paths.stateDirectory,
                socket: socket
            ),
            logger: makeLogger()
        )
        let (stop, continuation) = AsyncStream.makeStream(of: Void.self)
        let signals = SignalWatch([SIGTERM, SIGINT], of: .service) { continuation.yield() }
        defer { withExtendedLifetime(signals) {} }
        do {
            try await daemon.run(until: stop)
        } catch let error as QueueError {
            throw CommandError(opening: error)
        } catch let error as ControlSocketError {
            throw CommandError(.unknown, "\(error)")
        }
    }

    private func makeLogger() -> Logger {
        var logger = Logger(label: "netwatch") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = logLevel
        return logger
    }
}

extension Logger.Level {
    fileprivate static let names = allCases.map(\.rawValue).joined(separator: ", ")

    fileprivate static func named(_ name: String) throws -> Logger.Level {
        guard let level = Logger.Level(rawValue: name) else {
            throw ValidationError("`\(name)` is not a log level; the levels are \(names)")
        }
        return level
    }
}

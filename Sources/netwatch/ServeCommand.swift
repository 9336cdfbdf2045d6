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

            The variables STATE_DIRECTORY, RUNTIME_DIRECTORY and NOTIFY_SOCKET of a service manager are used. \
            SIGTERM and SIGINT stop the service. It waits up to 3 s for requests in flight; requests that are \
            not delivered stay in the queue.

            Exit status: 0 stopped by a signal; 2 the store is locked, the disk failed, or the socket could not \
            be opened; 64 wrong arguments; 78 the store is damaged, belongs to another program or a newer \
            netwatch, or was removed, moved or replaced while the service ran: a restart does not help.
            """
    )

    @Option(
        help:
            "The directory of the queue. Default $STATE_DIRECTORY, else /var/lib/netwatch, or XDG's for users."
    )
    var stateDir: String?

    @Option(
        help:
            "The control socket. Default $NETWATCH_SOCKET, else in $RUNTIME_DIRECTORY, /run/netwatch or XDG's directory."
    )
    var socket: String?

    @Option(help: "The lowest level to log: \(Logger.Level.names).", transform: Logger.Level.named)
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
            throw ValidationError("`\(name)` is not a log level; accepted: \(names)")
        }
        return level
    }
}

internal import ArgumentParser
internal import ClientCore
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
            netwatch serve --state-dir ./state --socket ./netwatch.sock \\
                --credentials ./credentials

            The service uses the variables STATE_DIRECTORY, RUNTIME_DIRECTORY, CREDENTIALS_DIRECTORY and \
            NOTIFY_SOCKET that a service manager sets. Options replace the values of environment variables such as \
            NETWATCH_QUEUE_INFLIGHT, and these replace the values of the configuration files; see `netwatch config`. \
            The log has a warning for each variable that begins with NETWATCH_ and has no effect. \
            SIGHUP makes the service read these files again.

            If these files or variables have a fault, the service starts with its last good configuration, \
            last-good.toml in the state directory. `netwatch status`, `netwatch doctor`, the status page, a metric \
            and the log report that. If standard error is a terminal and NOTIFY_SOCKET is not set, a person sees the \
            fault, and the command ends with 78.

            SIGTERM and SIGINT stop the service. It waits up to 3 s (`queue.stop-timeout`) for requests in flight, \
            and then ends their attempts. An attempt that was ended does not count, and its request stays in the \
            queue. A request that must not be sent twice is held if part of it may have been sent.

            Exit status: 0 after a signal; 2 if another process has the store open, the disk failed, or the \
            socket could not be opened; 64 for wrong arguments; 75 if the group database cannot be read; 78 if a \
            restart cannot help: the store is damaged, belongs to another program or a newer netwatch, or was \
            removed, moved or replaced while the service ran; the database is missing; the configuration has \
            faults and there is no last good one, or a person sees them; the directory of credentials or the file \
            of encryption keys cannot be used; or libcurl uses another major version of OpenSSL than netwatch.
            """
    )

    @OptionGroup var file: ConfigurationOption

    @Option(
        help: """
            The directory of the queue. Default: $NETWATCH_STATE_DIR; otherwise $STATE_DIRECTORY; otherwise \
            /var/lib/netwatch for root, $XDG_STATE_HOME/netwatch for other users.
            """
    )
    var stateDir: String?

    @Option(
        help: """
            The path of the control socket. Default: $NETWATCH_SOCKET; otherwise netwatch.sock in \
            $RUNTIME_DIRECTORY, in $XDG_RUNTIME_DIR/netwatch (not for root), or in /run/netwatch.
            """
    )
    var socket: String?

    @Option(
        help: .init(
            """
            The directory of the credentials, with a file for each. Default: $NETWATCH_CREDENTIALS; otherwise \
            $CREDENTIALS_DIRECTORY, if it is set.
            """,
            valueName: "directory"
        )
    )
    var credentials: String?

    @Option(
        help: .init(
            """
            An http URL that responds with 204. The service requests this URL before it sends the first request \
            over plain http on a new path, and waits while a captive portal responds instead. Default: none.
            """,
            valueName: "url"
        )
    )
    var portalProbe: String?

    @Option(
        help: .init(
            """
            A file with the keys that encrypt stored requests: 64 hexadecimal digits in each line. The first key \
            encrypts, all keys decrypt. Default: $NETWATCH_ENCRYPTION_KEY, an absolute path; otherwise \
            netwatch-queue-key in the directory of the credentials that a variable names, if it exists.
            """,
            valueName: "file"
        )
    )
    var encryptionKey: String?

    @Option(
        help: .init(
            """
            A loopback address and port for the status page, like 127.0.0.1:9317. Every user of this machine can \
            read the page. Default: none.
            """,
            valueName: "address:port"
        ),
        transform: WebAddress.argument
    )
    var web: WebAddress?

    @OptionGroup(title: "Pacing")
    var pacing: PacingOptions

    @Option(
        help: "The lowest level to log: \(Logger.Level.names). Default info.",
        transform: Logger.Level.named
    )
    var logLevel: Logger.Level?

    func validate() throws {
        let paths = [
            ("--state-dir", stateDir), ("--credentials", credentials), ("--encryption-key", encryptionKey),
        ]
        for (name, path) in paths where path == "" { throw ValidationError("`\(name)` must not be empty") }
        if encryptionKey == nil, let fault = ServicePaths().fault { throw ValidationError(fault) }
        guard let portalProbe else { return }
        do {
            _ = try CaptivePortalProbe.generate204(portalProbe)
        } catch {
            throw ValidationError("`--portal-probe`: \(error)")
        }
    }

    mutating func run() async throws {
        try CommandError.requireUsableTransport()
        let paths = ServicePaths()
        let socket = socket ?? paths.socket
        try SocketPath.requireUsable(ArgumentBytes(socket.utf8))
        var base = ServiceConfiguration(
            stateDirectory: (stateDir ?? paths.stateDirectory).absolutePath,
            socket: socket,
            credentials: (credentials ?? paths.credentialsDirectory)?.absolutePath
        )
        base.encryptionKey = (encryptionKey ?? paths.encryptionKeyFile)?.absolutePath
        base.version = Netwatch.configuration.version
        let start = try file.reading { () throws(InvalidConfiguration) in try startConfiguration(base) }
        try StoreDirectory.requireDatabase(in: start.configuration.stateDirectory)
        let threshold = LogThreshold(start.configuration.logLevel)
        let path = file.files.path.absolutePath
        let logger = Logger(label: "netwatch") { ServiceLogHandler(label: $0, threshold: threshold) }
        for variable in paths.unusedVariables { logger.warning("\(variable)") }
        let daemon = NetwatchDaemon(
            configuration: start.configuration,
            logger: logger,
            threshold: threshold,
            inUse: ConfigurationInUse(start, path: path) { [self, base] () throws(InvalidConfiguration) in
                try configuration(base)
            }
        )
        let (stop, continuation) = AsyncStream.makeStream(of: Void.self)
        let (reloads, reload) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Their default action would end the service.
        for unused in [SIGUSR1, SIGUSR2] { signal(unused, SIG_IGN) }
        // If the parent process ignores it, the kernel keeps no exit statuses of the programs of hooks.
        signal(SIGCHLD, SIG_DFL)
        let signals = SignalWatch([SIGTERM, SIGINT], of: .service) { continuation.yield() }
        let hangUps = SignalWatch([SIGHUP], of: .service) { reload.yield() }
        let orphans = Self.reapOrphans()
        defer { withExtendedLifetime((signals, hangUps, orphans)) {} }
        let failure = ServeFailure(
            isDirectoryNamed: stateDir != nil || paths.namedStateDirectory != nil,
            isSocketNamed: self.socket != nil,
            webPlace: web == nil ? start.place(of: "web.listen") : nil
        )
        do {
            try await daemon.run(until: stop, reloads: reloads)
        } catch let error as QueueError {
            throw failure.error(error)
        } catch let error as InvalidCredentialDirectory {
            throw CommandError(.unusableStore, Printer.printable("\(error)"))
        } catch let error as ControlSocketError {
            throw failure.error(error)
        }
    }

    /// Reaps ended orphans from now on, if this is process 1 of a PID namespace.
    private static func reapOrphans() -> SignalWatch? {
        guard getpid() == 1 else { return nil }
        let endedChildren = SignalWatch([SIGCHLD], of: .service) { ChildProcess.reapOrphans() }
        // A shell that was replaced by this process may have left children that have ended.
        ChildProcess.reapOrphans()
        return endedChildren
    }

    /// Reads the configuration files and the environment variables, or the last good configuration. Options replace
    /// their values.
    private func startConfiguration(
        _ base: ServiceConfiguration
    ) throws(InvalidConfiguration) -> StartConfiguration {
        var start = try StartConfiguration.reading(file.files, into: base, replacedBy: Self.lastGood(base))
        applyOptions(to: &start.configuration)
        return start
    }

    /// Reads the configuration files and the environment variables again. Options replace their values.
    private func configuration(
        _ base: ServiceConfiguration
    ) throws(InvalidConfiguration) -> ServiceConfiguration {
        var configuration = try file.files.read(into: base, after: Self.lastGood(base)).configuration
        applyOptions(to: &configuration)
        return configuration
    }

    private func applyOptions(to configuration: inout ServiceConfiguration) {
        configuration.portalProbe = portalProbe ?? configuration.portalProbe
        configuration.web = web ?? configuration.web
        configuration.logLevel = logLevel ?? configuration.logLevel
        pacing.apply(to: &configuration.queue)
    }

    /// Returns the last good configuration; `nil` if a person sees the faults.
    private static func lastGood(_ base: ServiceConfiguration) -> LastGoodConfiguration? {
        isWatchedByPerson ? nil : LastGoodConfiguration(stateDirectory: base.stateDirectory)
    }

    /// Whether a person can see the faults of the configuration now, and correct them. `INVOCATION_ID` and
    /// `JOURNAL_STREAM` do not tell: shells in terminals that systemd has started inherit them.
    private static var isWatchedByPerson: Bool {
        isatty(STDERR_FILENO) == 1 && !SystemdNotifier.fromEnvironment().hasManager
    }
}

extension WebAddress {
    fileprivate static func argument(_ text: String) throws -> WebAddress {
        guard let address = WebAddress(text) else {
            throw ValidationError("\(Printer.quoted(text)) is not \(acceptedForms)")
        }
        return address
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

/// The errors that end `netwatch serve`, with the options and keys that avoid them.
struct ServeFailure {
    /// Whether `--state-dir` or `NETWATCH_STATE_DIR` names the directory.
    let isDirectoryNamed: Bool
    /// Whether `--socket` names the socket.
    let isSocketNamed: Bool
    /// The file and line, or the variable, that sets `web.listen`; `nil` if `--web` or nothing does.
    let webPlace: String?
    var paths = ServicePaths()

    func error(_ error: QueueError) -> CommandError {
        let failure = CommandError(opening: error)
        guard error.code == .directoryUnusable, !isDirectoryNamed else { return failure }
        return failure.with(hint: "`--state-dir` names another directory")
    }

    func error(_ error: ControlSocketError) -> CommandError {
        CommandError(.unknown, "\(error)", hint: hint(error))
    }

    private func hint(_ error: ControlSocketError) -> String? {
        switch error {
        case .web:
            guard let webPlace else { return "`--web` names another address and port" }
            return
                "`web.listen` in \(Printer.quoted(webPlace)) sets the address; `--web` replaces it, and `--config` "
                + "names another configuration file"
        case .directory, .system:
            guard !isSocketNamed, !paths.isSocketNamed else { return nil }
            let cause = paths.lacksRuntimeDirectory ? "`XDG_RUNTIME_DIR` is not set; " : ""
            return "\(cause)`--socket` names another path"
        case .unusablePath, .inUse, .notASocket: return nil
        }
    }
}

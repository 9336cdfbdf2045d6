internal import ArgumentParser
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// The options of commands that work with the service, or with the queue's directory if no service is running.
struct QueueOptions: ParsableArguments {
    @OptionGroup var service: ServiceOptions

    @Option(
        help: """
            The directory of the queue, for use without the service. Only the owner of the directory and root can \
            use it. If the service that listens on the socket uses this directory, the command uses the service. \
            Default: $NETWATCH_STATE_DIR; if it is not set, the command uses the service; if no service is running \
            and no socket is given, the command uses the directory that `netwatch serve` would use.
            """
    )
    var stateDir: String?

    @Option(
        help: .init(
            """
            The file with the encryption keys of the queue, for use without the service. If the command uses the \
            service, the option has no effect. Default: $NETWATCH_ENCRYPTION_KEY, an absolute path; without a file, \
            encrypted parts are not shown.
            """,
            valueName: "file"
        )
    )
    var encryptionKey: String?

    func validate() throws {
        if stateDir == "" { throw ValidationError("`--state-dir` must not be empty") }
        if encryptionKey == "" { throw ValidationError("`--encryption-key` must not be empty") }
        if encryptionKey == nil, let fault = ServicePaths().fault { throw ValidationError(fault) }
    }

    /// The directory that the option or the variable names; `nil` if neither does.
    var namedDirectory: String? { stateDir ?? ServicePaths().namedStateDirectory }

    /// The file of keys that the option or the variable names; `nil` if neither does.
    var keyFile: String? { encryptionKey ?? ServicePaths().namedEncryptionKeyFile }

    /// Whether the queue may belong to a program with completion handlers. The service has none.
    var mayHaveHandlers: Bool { namedDirectory != nil }

    /// Calls `body` with a client of the queue: through the service, or in the queue's directory if no service is
    /// running.
    func withQueue<Value>(_ body: (ServiceClient) async throws -> Value) async throws -> Value {
        try await withQueue { client, _ in try await body(client) }
    }

    /// Calls `body` with a client of the queue.
    ///
    /// - Parameters:
    ///   - mayCreate: Whether to create a queue in an empty directory that the user has named. Default: an empty directory is
    ///     an error.
    ///   - body: Receives a client, and the queue itself if no service is used.
    func withQueue<Value>(
        mayCreate: Bool = false,
        _ body: (ServiceClient, StoredQueue?) async throws -> Value
    ) async throws -> Value {
        switch try access() {
        case .service(let path): return try await withService(at: path, body)
        case .directory(let directory):
            return try await withDirectory(directory, mayCreate: mayCreate && namedDirectory != nil, body)
        }
    }

    /// Calls `body` with a client of the queue, for a command that only the service can carry out. Without a service,
    /// the error does not propose to open the directory.
    func withRunningService<Value>(_ body: (ServiceClient) async throws -> Value) async throws -> Value {
        do {
            return try await withQueue(body)
        } catch let error as CommandError where error.status == .unavailable {
            throw error.with(hint: try startHint())
        }
    }

    /// Returns how to start the service that the command needs.
    private func startHint() throws(CommandError) -> String {
        switch try access() {
        case .service(let socket): SystemUnit.startHint(socket: socket)
        case .directory(let path): SystemUnit.startHint(stateDirectory: path)
        }
    }

    /// Returns the directory to open if no service is running.
    ///
    /// - Throws: A usage error if only a socket is given, because its service may use any directory.
    func directoryWithoutService() throws(CommandError) -> String {
        if let namedDirectory { return namedDirectory }
        let paths = ServicePaths()
        guard !service.isSocketNamed else {
            throw CommandError(
                .usage,
                "the queue's directory is unknown if only a socket is given; use `--state-dir`"
            )
        }
        return paths.existingStateDirectory ?? paths.stateDirectory
    }

    /// Returns the directory that `withQueue` would open; `nil` if it would use the service.
    func directoryIfNoServiceRuns() throws(CommandError) -> String? {
        if case .directory(let path) = try access() { path } else { nil }
    }

    private enum Access {
        case service(ArgumentBytes)
        case directory(String)
    }

    private func access() throws(CommandError) -> Access {
        if let namedDirectory { return .directory(namedDirectory) }
        let paths = ServicePaths()
        guard !service.isSocketNamed, let directory = paths.existingStateDirectory else {
            return .service(try service.path())
        }
        // If the default path is too long, or names a file that is not a socket, no service can listen on it.
        guard let socket = try? service.path() else { return .directory(directory) }
        do throws(SystemError) {
            _ = try ServiceProcess.id(listeningAt: socket.bytes)
        } catch {
            // For any other error a service exists. Connecting to it reports the problem.
            let isStopped = error.errno == ENOENT || error.errno == ECONNREFUSED
            if isStopped, !StoreDirectory.isOfAnotherUser(directory) { return .directory(directory) }
        }
        return .service(socket)
    }

    private func withService<Value>(
        at socket: ArgumentBytes,
        _ body: (ServiceClient, StoredQueue?) async throws -> Value
    ) async throws -> Value {
        if encryptionKey != nil {
            let service = "the service at \(Printer.quoted(socket.description))"
            Printer.note("`--encryption-key` has no effect: \(service) uses its own keys")
        }
        do {
            return try await body(ServiceClient(path: socket), nil)
        } catch let error as CommandError where error.status == .unavailable {
            throw error.with(
                hint: "\(SystemUnit.startHint(socket: socket)); "
                    + "`--state-dir` opens the queue's directory without it"
            )
        }
    }

    private func withDirectory<Value>(
        _ directory: String,
        mayCreate: Bool,
        _ body: (ServiceClient, StoredQueue?) async throws -> Value
    ) async throws -> Value {
        try StoreDirectory.requireOwn(directory, mayBeEmpty: mayCreate)
        try StoreDirectory.requireDatabase(in: directory)
        let queue: StoredQueue
        do {
            queue = try await StoredQueue.opening(directory, encryptionKey: keyFile)
        } catch let error as QueueError {
            // The process that owns the queue may be the service. Then the command uses the service.
            if error.code == .alreadyOwned, let socket = try? service.path(),
                error.ownerPID == (try? ServiceProcess.id(listeningAt: socket.bytes))
            {
                return try await withService(at: socket, body)
            }
            throw CommandError(opening: error)
        }
        do {
            let client = ServiceClient(StoreTransport(directory: directory, queue: queue))
            let value = try await body(client, queue)
            await queue.close()
            return value
        } catch {
            await queue.close()
            throw error
        }
    }
}

extension CommandError {
    /// Creates the error for a queue's directory that cannot be opened.
    init(opening error: QueueError) {
        // A retry cannot help with these errors.
        let isPermanent = [.storeUnusable, .storeReplaced, .invalidConfiguration, .encryptionKeyUnusable]
            .contains(error.code)
        self.init(
            isPermanent ? .unusableStore : .unknown,
            Printer.printable(error.message),
            hint: error.code == .alreadyOwned ? Self.lockedStoreHint(error.ownerPID) : nil
        )
    }

    private static func lockedStoreHint(_ owner: Int32?) -> String {
        let process = owner.map { "process \($0)" } ?? "it"
        return "if that process is a service, use its `--socket`; otherwise wait until \(process) ends"
    }
}

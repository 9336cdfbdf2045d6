internal import ArgumentParser
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// The options of commands that can work without a service.
struct QueueOptions: ParsableArguments {
    @OptionGroup var service: ServiceOptions

    @Option(
        help: "The queue's directory, to use the queue without a service. It must belong to the current user."
    )
    var stateDir: String?

    /// Calls `body` with a client of the queue: through the service, or in the queue's directory if no service runs.
    func withQueue<Value>(_ body: (ServiceClient) async throws -> Value) async throws -> Value {
        try await withQueue { client, _ in try await body(client) }
    }

    /// Calls `body` with a client of the queue.
    ///
    /// - Parameter body: Also receives the queue itself if no service is used.
    func withQueue<Value>(_ body: (ServiceClient, StoredQueue?) async throws -> Value) async throws -> Value {
        switch try access() {
        case .service(let path): return try await body(ServiceClient(path: path), nil)
        case .directory(let directory): return try await withDirectory(directory, body)
        }
    }

    /// Returns the directory to open if no service runs. Throws if a socket is named, because its service may have
    /// another queue.
    func directoryWithoutService() throws(CommandError) -> String {
        if let stateDir { return stateDir }
        let paths = ServicePaths()
        guard service.socket == nil, !paths.isSocketNamed else {
            throw CommandError(
                .usage,
                "the queue's directory is unknown if only a socket is given; use `--state-dir`"
            )
        }
        return paths.existingStateDirectory ?? paths.stateDirectory
    }

    /// Returns the directory that `withQueue` would open; `nil` if it would connect to a service.
    func directoryIfNoServiceRuns() throws(CommandError) -> String? {
        if case .directory(let path) = try access() { path } else { nil }
    }

    private enum Access {
        case service(String)
        case directory(String)
    }

    private func access() throws(CommandError) -> Access {
        if let stateDir { return .directory(stateDir) }
        let paths = ServicePaths()
        guard service.socket == nil, !paths.isSocketNamed, let directory = paths.existingStateDirectory else {
            return .service(try service.path())
        }
        // No service can listen on the default path if it is not a valid socket path.
        guard let socket = try? service.path() else { return .directory(directory) }
        do throws(SystemError) {
            _ = try ServiceProcess.id(listeningAt: socket)
        } catch {
            // Any other error means that the service exists, and connecting to it reports the problem.
            if error.errno == ENOENT || error.errno == ECONNREFUSED { return .directory(directory) }
        }
        return .service(socket)
    }

    private func withDirectory<Value>(
        _ directory: String,
        _ body: (ServiceClient, StoredQueue?) async throws -> Value
    ) async throws -> Value {
        try StoreDirectory.requireOwn(directory)
        let queue: StoredQueue
        do {
            queue = try await StoredQueue.opening(directory)
        } catch let error as QueueError {
            // The service may be the process that owns the queue.
            if error.code == .alreadyOwned, let socket = try? service.path(),
                error.ownerPID == (try? ServiceProcess.id(listeningAt: socket))
            {
                return try await body(ServiceClient(path: socket), nil)
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
        // Retrying does not help with these errors.
        let isPermanent = [.storeUnusable, .storeReplaced, .invalidConfiguration].contains(error.code)
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

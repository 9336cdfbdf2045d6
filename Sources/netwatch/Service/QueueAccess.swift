internal import ArgumentParser
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// Options of every command that talks to the service.
struct ServiceOptions: ParsableArguments {
    @Option(help: "The service's control socket. Default $NETWATCH_SOCKET, else the usual place.")
    var socket: String?

    /// The socket that is meant.
    ///
    /// - Throws: A usage error for a path that no socket can have, and for a file that is none.
    func path() throws(CommandError) -> String {
        let paths = ServicePaths()
        let path = socket ?? paths.socketForCommands
        do {
            try SocketPath.requireSocket(path)
        } catch {
            guard socket == nil, paths.isSocketNamed else { throw error }
            throw error.with(hint: "`NETWATCH_SOCKET` names it")
        }
        return path
    }
}

/// Options of the commands that do without a service if they must.
struct QueueOptions: ParsableArguments {
    @OptionGroup var service: ServiceOptions

    @Option(
        help: "The queue's own directory, for when no service runs. It has to belong to the user who asks."
    )
    var stateDir: String?

    /// Does something with the queue: through the service; without one, in its directory.
    func withQueue<Value>(_ body: (ServiceClient) async throws -> Value) async throws -> Value {
        try await withQueue { client, _ in try await body(client) }
    }

    /// Does something with the queue.
    ///
    /// - Parameter body: Is given the queue itself, too, when no service is in between.
    func withQueue<Value>(_ body: (ServiceClient, StoredQueue?) async throws -> Value) async throws -> Value {
        switch try place() {
        case .service(let path): return try await body(ServiceClient(path: path), nil)
        case .directory(let directory): return try await withDirectory(directory, body)
        }
    }

    /// The directory that would be opened if no service ran. Who names a socket means the queue of another service.
    func directoryWithoutService() throws(CommandError) -> String {
        if let stateDir { return stateDir }
        let paths = ServicePaths()
        guard service.socket == nil, !paths.isSocketNamed else {
            throw CommandError(.usage, "a socket does not tell which directory is meant; give `--state-dir`")
        }
        return paths.existingStateDirectory ?? paths.stateDirectory
    }

    /// The directory that `withQueue` would open; `nil` when it would ask a service.
    func directoryIfNoServiceRuns() throws(CommandError) -> String? {
        if case .directory(let path) = try place() { path } else { nil }
    }

    private enum Place {
        case service(String)
        case directory(String)
    }

    private func place() throws(CommandError) -> Place {
        if let stateDir { return .directory(stateDir) }
        let paths = ServicePaths()
        let socket = try service.path()
        guard service.socket == nil, !paths.isSocketNamed, let directory = paths.existingStateDirectory else {
            return .service(socket)
        }
        do throws(SystemError) {
            _ = try ServiceProcess.id(listeningAt: socket)
        } catch {
            // Whatever else keeps it from answering, it is there, and its own message says so.
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
            // The service may well be the one who has it.
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
    /// Why a queue's directory cannot be used.
    init(opening error: QueueError) {
        // Trying again helps with neither.
        let needsSomebody = [.storeUnusable, .storeReplaced, .invalidConfiguration].contains(error.code)
        self.init(needsSomebody ? .unusableStore : .unknown, Printer.printable(error.message))
    }
}

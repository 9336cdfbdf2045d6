internal import ClientCore
package import Logging
internal import NetwatchEventLoop
internal import NetworkReachability
internal import OfflineQueue

/// The service: the queue, the path monitor that wakes it, and the control socket.
package struct NetwatchDaemon: Sendable {
    /// The configuration of the service.
    package struct Configuration: Sendable {
        /// The directory of the queue.
        package var stateDirectory: String
        /// The path of the control socket.
        package var socket: String

        package init(stateDirectory: String, socket: String) {
            self.stateDirectory = stateDirectory
            self.socket = socket
        }
    }

    private let configuration: Configuration
    private let logger: Logger
    private let notifier = SystemdNotifier.fromEnvironment()
    private let inheritedSockets = InheritedSockets.fromEnvironment()

    package init(configuration: Configuration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Runs the service until `stop` yields.
    ///
    /// - Parameter stop: The service shuts down cleanly when this stream yields its first element.
    /// - Throws: ``QueueError`` if the store cannot be opened or fails later, ``ControlSocketError`` if the socket
    ///   cannot be claimed.
    package func run(until stop: AsyncStream<Void>) async throws {
        ProcessLimits.returnLargeBlocks()
        let descriptors = ProcessLimits.raiseDescriptors()
        let monitor = makeMonitor()
        var settings = OfflineQueue.Configuration(directory: configuration.stateDirectory)
        // Shorter than the control server's grace period, so that a client waiting for a send still gets the response
        // that its request is stored.
        settings.stopTimeout = ControlServer.Limits().stopGrace - .seconds(2)
        let queue = try await OfflineQueue(
            configuration: settings,
            session: .bare(monitor: monitor),
            monitor: monitor
        )
        for note in queue.openingNotes { logger.warning("\(note)") }
        do {
            try await serve(queue, monitor, descriptors: descriptors, until: stop)
        } catch {
            await queue.stop()
            throw error
        }
    }

    /// Uses the service manager's netlink socket if there is one. It can have a larger receive buffer than this process
    /// may set.
    private func makeMonitor() -> PathMonitor {
        guard let socket = inheritedSockets.routeNetlink else { return .shared }
        logger.info("using the service manager's netlink socket")
        var configuration = PathMonitor.Configuration()
        configuration.inheritedSocket = socket
        return PathMonitor(configuration: configuration)
    }

    private func serve(
        _ queue: OfflineQueue,
        _ monitor: PathMonitor,
        descriptors: Int,
        until stop: AsyncStream<Void>
    ) async throws {
        var limits = ControlServer.Limits()
        limits.fit(descriptors: descriptors)
        // Leaves room for a Base64 body and the rest of its JSON.
        limits.bodyBytes = ControlMessage.maximumBodyBytes * 3 / 2
        let server = try ControlServer(
            path: configuration.socket,
            router: QueueRoutes(queue: queue, isRunning: true).router,
            limits: limits,
            logger: logger
        ) { () throws(ControlSocketError) in try makeSocketDirectory() }
        let path = await monitor.statuses(of: .general).first { _ in true }
        try await queue.start()
        announceReady(path, monitor)
        let failure = await firstFailure(of: queue, until: stop)
        logFailure(notifier.notify(.stopping))
        async let isServerStopped: Void = server.stop()
        await queue.stop()
        await isServerStopped
        if let failure { throw failure }
    }

    /// Other users may enter the directory, because the mode of the socket itself controls access.
    private func makeSocketDirectory() throws(ControlSocketError) {
        guard let end = configuration.socket.lastIndex(of: "/"), end != configuration.socket.startIndex else {
            return
        }
        do {
            try Directory.make(String(configuration.socket[..<end]), mode: 0o755)
        } catch {
            throw .system(error)
        }
    }

    private func announceReady(_ path: PathStatus?, _ monitor: PathMonitor) {
        if let failure = monitor.failure {
            logger.warning(
                "netlink is unavailable, reachability is unknown",
                metadata: ["error": "\(failure)"]
            )
        }
        for shortcoming in SessionManager.transportShortcomings {
            logger.warning("\(shortcoming)")
        }
        let summary =
            path.map { "network: \($0.reason.map(\.description) ?? "reachable")" } ?? "network: unknown"
        logFailure(notifier.notify(.ready, .status(summary)))
        logger.info(
            "ready",
            metadata: [
                "socket": "\(configuration.socket)", "state": "\(configuration.stateDirectory)",
            ]
        )
    }

    /// Waits until `stop` yields (`nil`) or the queue fails.
    private func firstFailure(of queue: OfflineQueue, until stop: AsyncStream<Void>) async -> QueueError? {
        await withTaskGroup(of: QueueError?.self) { group in
            group.addTask { await queue.failures.first { _ in true } }
            group.addTask {
                _ = await stop.first { _ in true }
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    private func logFailure(_ error: SystemError?) {
        guard let error else { return }
        logger.warning("could not notify the service manager", metadata: ["error": "\(error)"])
    }
}

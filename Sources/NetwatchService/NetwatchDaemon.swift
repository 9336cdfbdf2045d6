internal import ClientCore
internal import Foundation
package import Logging
internal import NetwatchEventLoop
internal import NetworkReachability
internal import OfflineQueue

/// The service: the queue, the path monitor that starts its attempts, and the control socket.
package struct NetwatchDaemon: Sendable {
    private let configuration: ServiceConfiguration
    private let logger: Logger
    private let threshold: LogThreshold
    private let reread: @Sendable () throws(InvalidConfiguration) -> ServiceConfiguration
    private let notifier = SystemdNotifier.fromEnvironment()
    private let inheritedSockets = InheritedSockets.fromEnvironment()

    /// - Parameters:
    ///   - threshold: The threshold of the logger, which a reload sets.
    ///   - reread: Reads the configuration again, for a reload.
    package init(
        configuration: ServiceConfiguration,
        logger: Logger,
        threshold: LogThreshold,
        reread: @escaping @Sendable () throws(InvalidConfiguration) -> ServiceConfiguration
    ) {
        self.configuration = configuration
        self.logger = logger
        self.threshold = threshold
        self.reread = reread
    }

    /// Runs the service.
    ///
    /// - Parameters:
    ///   - stop: The first element of this stream starts a clean shutdown.
    ///   - reloads: Each element makes the service read its configuration again. With any fault, the service keeps its
    ///     configuration and logs all faults.
    /// - Throws: ``InvalidCredentialDirectory``, ``QueueError`` if the store cannot be opened or fails later,
    ///   ``ControlSocketError`` if the control socket cannot be opened.
    package func run(until stop: AsyncStream<Void>, reloads: AsyncStream<Void>) async throws {
        ProcessLimits.returnLargeBlocks()
        let descriptors = ProcessLimits.raiseDescriptors()
        let credentials = CredentialDirectory(path: configuration.credentials)
        for fault in try await credentials.check() { logger.warning("\(fault)") }
        let monitor = makeMonitor()
        var settings = configuration.queue
        settings.captivePortalProbe = configuration.portalProbe
        settings.encryptionKeyFile = configuration.encryptionKey
        if configuration.encryptionKey != nil { ProcessLimits.forbidCoreDumps() }
        // The queue must stop before the control server's grace period ends. Then a client that waits for the first
        // attempt of its request still gets the response that the request is stored.
        settings.stopTimeout =
            ControlServer.Limits().stopGrace - OfflineQueue.cancellationTimeout - .seconds(1)
        let queue = try await OfflineQueue(
            configuration: settings,
            session: .bare(monitor: monitor),
            monitor: monitor
        )
        for note in queue.openingNotes { logger.warning("\(note)") }
        let warnings = Task { for await warning in queue.warnings { logger.warning("\(warning)") } }
        defer { warnings.cancel() }
        await queue.use(credentials)
        // Created before the queue starts, so that no change between the first attempts and the first examination is
        // missed.
        let watch = await CredentialWatch(credentials)
        let watching = Task { await watch.run(for: queue) }
        defer { watching.cancel() }
        do {
            try await serve(queue, monitor, descriptors: descriptors, until: stop, reloads: reloads)
        } catch {
            await queue.stop()
            throw error
        }
    }

    /// Creates the path monitor. It uses the netlink socket of the service manager if there is one, because that socket
    /// can have a larger receive buffer than an unprivileged process may set.
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
        until stop: AsyncStream<Void>,
        reloads: AsyncStream<Void>
    ) async throws {
        var limits = ControlServer.Limits()
        limits.fit(descriptors: descriptors)
        limits.bodyBytes = ControlMessage.maximumMessageBytes
        limits.userConnections = configuration.userConnections
        let history = openHistory()
        let hooks = HookReporter(logger: logger) { request, options in
            _ = try await queue.enqueue(request, options: options)
        }
        await hooks.use(configuration.hooks)
        let hosts = HostMonitor(monitor: monitor, history: history, hooks: hooks, logger: logger)
        let view = HostsView(monitor: hosts, history: history)
        let state = ServiceState(queue: queue, monitor: monitor, hosts: view, version: configuration.version)
        let access = AccessRules(policy: configuration.access, quota: configuration.quota)
        let server = try ControlServer(
            path: configuration.socket,
            mode: configuration.access.socketMode,
            router: ControlRouter(state.routes(access: access), access: access),
            limits: limits,
            logger: logger
        ) { () throws(ControlSocketError) in try makeSocketDirectory() }
        let webServer = try configuration.web.map { (address) throws(ControlSocketError) in
            let router = ControlRouter(state.readOnlyRoutes, hosts: HostAllowList(address))
            return try ControlServer(address: address, router: router, limits: limits, logger: logger)
        }
        let path = await monitor.statuses(of: .general).first { _ in true }
        try await queue.start()
        async let _ = hosts.run(configuration.hosts)
        let reloadable = Reloadable(hosts: hosts, hooks: hooks, server: server, access: access)
        async let _ = reload(reloadable, at: reloads)
        async let _ = reportProgress(of: queue, monitor)
        announceReady(path, monitor)
        await logEncryption(of: queue)
        let failure = await firstFailure(of: queue, until: stop)
        logFailure(notifier.notify(.stopping))
        if failure == nil { await logStop(of: queue) }
        async let isServerStopped: Void = server.stop()
        async let isWebStopped: Void? = webServer?.stop()
        async let areHooksStopped: Void = hooks.stop()
        await queue.stop()
        await isServerStopped
        await isWebStopped
        await areHooksStopped
        if let failure { throw failure }
    }

    /// Tells the service manager's watchdog that the service makes progress, three times per interval. If the store or
    /// the path monitor hangs, the next report is late, and the service manager restarts the service.
    private func reportProgress(of queue: OfflineQueue, _ monitor: PathMonitor) async {
        let environment = ProcessInfo.processInfo.environment
        guard let interval = SystemdNotifier.watchdogInterval(environment) else { return }
        while !Task.isCancelled {
            // An error is progress, too. The service ends by itself after errors that last.
            _ = try? await queue.counts
            _ = await monitor.statuses(of: .general).first { _ in true }
            logFailure(notifier.notify(.watchdog))
            try? await Task.sleep(for: interval / 3)
        }
    }

    // MARK: Reloading

    /// The parts of the service that a reload changes.
    private struct Reloadable {
        let hosts: HostMonitor
        let hooks: HookReporter
        let server: ControlServer
        let access: AccessRules
    }

    private func reload(_ parts: Reloadable, at reloads: AsyncStream<Void>) async {
        for await _ in reloads {
            logFailure(notifier.notify(.reloading))
            do {
                try await apply(try reread(), to: parts)
            } catch {
                let faults = (error as? InvalidConfiguration)?.problems.map { "\($0)" } ?? ["\(error)"]
                for fault in faults { logger.error("\(fault)") }
                logger.error("the configuration files were not applied; the service keeps the old values")
            }
            logFailure(notifier.notify(.ready))
        }
    }

    private func apply(_ new: ServiceConfiguration, to parts: Reloadable) async throws(ControlSocketError) {
        // Only this can fail, so it is the first change.
        try parts.server.admit(mode: new.access.socketMode, userConnections: new.userConnections)
        parts.access.replace(policy: new.access, quota: new.quota)
        threshold.level = new.logLevel
        await parts.hooks.use(new.hooks)
        await parts.hosts.update(new.hosts)
        let keys = SettingTable.restartKeys.filter { new.settings[$0] != configuration.settings[$0] }
        logger.notice("the configuration was read again", metadata: ["hosts": "\(new.hosts.count)"])
        guard !keys.isEmpty else { return }
        let list = keys.map { "`\($0)`" }.joined(separator: ", ")
        logger.warning("these settings change only when the service is restarted: \(list)")
    }

    /// Opens the history of the hosts. The service runs without it if it is damaged, because nothing else needs the
    /// history.
    private func openHistory() -> HostHistory? {
        let path = "\(configuration.stateDirectory)/history.sqlite"
        do {
            return try HostHistory(path: path)
        } catch {
            logger.warning("the uptime of the hosts is not recorded: \(error)")
            return nil
        }
    }

    /// Creates the directory of the control socket. Other users may enter it (mode 0755), because the mode of the
    /// socket itself controls access. Missing parents are not created, because they suggest a mistyped path.
    private func makeSocketDirectory() throws(ControlSocketError) {
        guard let end = configuration.socket.lastIndex(of: "/"), end != configuration.socket.startIndex else {
            return
        }
        do {
            try Directory.make(String(configuration.socket[..<end]), mode: 0o755, withParents: false)
        } catch {
            throw .system(error)
        }
    }

    private func announceReady(_ path: PathStatus?, _ monitor: PathMonitor) {
        if let failure = monitor.failure {
            logger.warning(
                "netlink is unavailable, so reachability is unknown",
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

    /// Logs whether stored requests are encrypted. A missing key was already logged.
    private func logEncryption(of queue: OfflineQueue) async {
        guard let uses = try? await queue.statistics().encryption else { return }
        guard let key = uses.first(where: \.isCurrent)?.keyID else {
            if uses.isEmpty { logger.info("stored requests are not encrypted") }
            return
        }
        let others = uses.reduce(0) { $0 + ($1.isAvailable && !$1.isCurrent ? $1.requests : 0) }
        let rest = others == 0 ? "" : "; requests that are not converted to this key yet: \(others)"
        logger.info("stored requests are encrypted with the key `\(key)`\(rest)")
    }

    /// Logs the beginning of a stop, with the number of requests that wait and that are in flight.
    private func logStop(of queue: OfflineQueue) async {
        guard let counts = try? await queue.counts else { return }
        logger.info(
            "stopping",
            metadata: [
                "pending": "\(counts[.pending])", "inflight": "\(counts[.inflight])",
                "held": "\(counts[.held])",
            ]
        )
    }

    /// Waits until `stop` yields or the queue fails. Returns the queue's error; `nil` if `stop` yielded.
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

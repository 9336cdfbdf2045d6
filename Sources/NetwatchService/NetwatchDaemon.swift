internal import ClientCore
internal import Foundation
package import Logging
internal import NetwatchEventLoop
internal import NetworkReachability
internal import OfflineQueue

/// The service: the queue, the path monitor that starts its attempts, and the control socket.
package struct NetwatchDaemon: Sendable {
    /// The minimum time between two status lines.
    private static let statusInterval = Duration.seconds(5)

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
            ControlServer.Limits().stopGrace - settings.cancellationTimeout - .seconds(1)
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
        let server = try makeServer(state, access, limits)
        let webServer = try configuration.web.map { (address) throws(ControlSocketError) in
            let router = ControlRouter(state.readOnlyRoutes, hosts: HostAllowList(address))
            return try ControlServer(
                address: address,
                router: router,
                limits: limits,
                logger: logger,
                inherited: inheritedSockets.listener(at: address)
            )
        }
        reportUnusedSockets()
        // After the first lookup, the status line and the first attempts know the path.
        _ = await monitor.statuses(of: .general).first { _ in true }
        // Obtained before the start, so that the log has the requests that the start changes.
        let events = try await queue.events
        try await queue.start()
        async let isLogged: Void = QueueLog(logger).run(events)
        async let _ = state.meter.run(events)
        let monitoring = Task { await hosts.run(configuration.hosts) }
        let parts = Reloadable(hosts: hosts, hooks: hooks, server: server, access: access)
        await state.reloads.use { await reload(parts) }
        async let _ = state.reloads.run(at: reloads)
        async let _ = reportProgress(of: state)
        let status = await announceReady(state)
        async let _ = reportStatus(of: state, after: status)
        await logEncryption(of: queue)
        let failure = await firstFailure(of: queue, until: stop)
        state.readiness.phase = .stopping
        logFailure(notifier.notify(.stopping))
        if failure == nil { await logStop(of: queue) }
        async let isServerStopped: Void = server.stop()
        async let isWebStopped: Void? = webServer?.stop()
        async let areHooksStopped: Void = hooks.stop()
        // The monitor stops before the queue, which stores the webhooks of its last changes. Otherwise the history
        // would record the end of an outage that no hook has reported.
        monitoring.cancel()
        await monitoring.value
        await queue.stop()
        await isLogged
        await isServerStopped
        await isWebStopped
        await areHooksStopped
        if let failure { throw failure }
    }

    /// Tells the service manager's watchdog three times per interval that the store, the queue, the path monitor, the
    /// host monitor and the thread of the transfers make progress.
    private func reportProgress(of state: ServiceState) async {
        let environment = ProcessInfo.processInfo.environment
        guard let interval = SystemdNotifier.watchdogInterval(environment) else { return }
        let heartbeat = Heartbeat(
            interval: interval / 3,
            parts: [
                // An error is progress, too. The service ends by itself after errors that last.
                { _ = try? await state.queue.counts },
                { _ = await state.monitor.statuses(of: .general).first { _ in true } },
                { _ = await state.hosts.monitor.snapshots },
                { await SessionManager.awaitTransportTurn() },
            ],
            report: { logFailure(notifier.notify(.watchdog)) }
        )
        await heartbeat.run()
    }

    /// Sends the status line to the service manager when it has changed, but at most once per interval.
    ///
    /// - Parameter sent: The line that was sent last.
    private func reportStatus(of state: ServiceState, after sent: String) async {
        guard notifier.hasManager else { return }
        var sent = sent
        while (try? await Task.sleep(for: Self.statusInterval)) != nil {
            let line = await state.statusLine().text
            guard line != sent else { continue }
            logFailure(notifier.notify(.status(line)))
            sent = line
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

    private func reload(_ parts: Reloadable) async -> ConfigurationReloads.Outcome {
        logFailure(notifier.notify(.reloading))
        defer { logFailure(notifier.notify(.ready)) }
        do {
            return try await apply(try reread(), to: parts)
        } catch {
            let faults = (error as? InvalidConfiguration)?.problems.map { "\($0)" } ?? ["\(error)"]
            for fault in faults { logger.error("\(fault)") }
            logger.error("the configuration files were not applied; the service keeps the old values")
            return .refused(faults)
        }
    }

    private func apply(
        _ new: ServiceConfiguration,
        to parts: Reloadable
    ) async throws(ControlSocketError) -> ConfigurationReloads.Outcome {
        // Only this can fail, so it is the first change.
        try parts.server.admit(mode: new.access.socketMode, userConnections: new.userConnections)
        parts.access.replace(policy: new.access, quota: new.quota)
        threshold.level = new.logLevel
        await parts.hooks.use(new.hooks)
        await parts.hosts.update(new.hosts)
        let keys = SettingTable.restartKeys.filter { new.settings[$0] != configuration.settings[$0] }
        logger.notice("the configuration was read again", metadata: ["hosts": "\(new.hosts.count)"])
        if !keys.isEmpty {
            let list = keys.map { "`\($0)`" }.joined(separator: ", ")
            logger.warning("these settings change only when the service is restarted: \(list)")
        }
        return .applied(hosts: new.hosts.count, restartKeys: keys)
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

    /// Creates the server of the control socket. It uses the socket of the service manager if there is one for its
    /// path.
    private func makeServer(
        _ state: ServiceState,
        _ access: AccessRules,
        _ limits: ControlServer.Limits
    ) throws(ControlSocketError) -> ControlServer {
        let inherited = inheritedSockets.listener(at: configuration.socket)
        if inherited != nil { logger.info("using the service manager's control socket") }
        return try ControlServer(
            path: configuration.socket,
            mode: configuration.access.socketMode,
            router: ControlRouter(state.routes(access: access), access: access),
            limits: limits,
            logger: logger,
            inherited: inherited
        ) { () throws(ControlSocketError) in try makeSocketDirectory() }
    }

    /// Warns about sockets of the service manager that no part of the service uses: their clients would get no
    /// response.
    private func reportUnusedSockets() {
        let used = [
            inheritedSockets.routeNetlink, inheritedSockets.listener(at: configuration.socket),
            configuration.web.flatMap { inheritedSockets.listener(at: $0) },
        ]
        let unused = inheritedSockets.count - used.count { $0 != nil }
        guard unused > 0 else { return }
        logger.warning("sockets of the service manager that the service does not use: \(unused)")
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

    /// Tells the service manager and the log that the service is ready. Returns the status line of this moment.
    private func announceReady(_ state: ServiceState) async -> String {
        if let failure = state.monitor.failure {
            logger.warning(
                "netlink is unavailable, so reachability is unknown",
                metadata: ["error": "\(failure)"]
            )
        }
        for shortcoming in SessionManager.transportShortcomings {
            logger.warning("\(shortcoming)")
        }
        let status = await state.statusLine().text
        state.readiness.phase = .ready
        logFailure(notifier.notify(.ready, .status(status)))
        let counts = await counts(of: state.queue, [.pending, .inflight, .held, .dead])
        let paths: Logger.Metadata = [
            "socket": "\(configuration.socket)", "state": "\(configuration.stateDirectory)",
        ]
        logger.info("ready", metadata: paths.merging(counts) { $1 })
        return status
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
        let counts = await counts(of: queue, [.pending, .inflight, .held])
        logger.info("stopping", metadata: counts)
    }

    /// Returns the numbers of requests in some states for a log line; nothing if the store cannot be read.
    private func counts(of queue: OfflineQueue, _ states: [QueuedRequest.State]) async -> Logger.Metadata {
        guard let counts = try? await queue.counts else { return [:] }
        let values = states.map { ($0.rawValue, Logger.MetadataValue.stringConvertible(counts[$0])) }
        return Dictionary(uniqueKeysWithValues: values)
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

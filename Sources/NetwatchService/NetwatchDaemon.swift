internal import ClientCore
internal import Dispatch
internal import Glibc
package import Logging
internal import NetwatchEventLoop
internal import NetworkReachability
internal import OfflineQueue

/// The service: the queue, the path monitor that starts its attempts, and the control socket.
package struct NetwatchDaemon: Sendable {
    let configuration: ServiceConfiguration
    let logger: Logger
    let threshold: LogThreshold
    let inUse: ConfigurationInUse
    let notifier = SystemdNotifier.fromEnvironment()
    private let inherited: InheritedSockets.Uses

    /// - Parameters:
    ///   - threshold: The threshold of the logger, which a reload sets.
    ///   - inUse: The same configuration, with what reads it again for a reload.
    package init(
        configuration: ServiceConfiguration,
        logger: Logger,
        threshold: LogThreshold,
        inUse: ConfigurationInUse
    ) {
        self.configuration = configuration
        self.logger = logger
        self.threshold = threshold
        self.inUse = inUse
        inherited = InheritedSockets.fromEnvironment().uses(
            control: configuration.socket,
            web: configuration.web
        )
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
        logFallback()
        ProcessLimits.returnLargeBlocks()
        let descriptors = ProcessLimits.raiseDescriptors()
        let credentials = CredentialDirectory(path: configuration.credentials)
        for fault in try await credentials.check() { logger.warning("\(fault)") }
        try requireFreeSocket()
        let monitor = makeMonitor()
        var settings = configuration.queue
        settings.captivePortalProbe = configuration.portalProbe
        settings.encryptionKeyFile = configuration.encryptionKey
        if configuration.encryptionKey != nil { ProcessLimits.forbidCoreDumps() }
        let queue = try await OfflineQueue(
            configuration: settings,
            session: .bare(monitor: monitor),
            monitor: monitor
        )
        for note in queue.openingNotes + [BootID.note].compactMap(\.self) { logger.warning("\(note)") }
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

    /// Checks the socket before a new store is created, so that a service that cannot use its socket leaves no store
    /// behind. If there is a store, its owner is the better message.
    private func requireFreeSocket() throws(ControlSocketError) {
        guard access("\(configuration.stateDirectory)/queue.sqlite", F_OK) != 0,
            inherited.control == nil
        else { return }
        try ControlSocket.requireFree(configuration.socket)
    }

    /// Creates the path monitor. It uses the netlink socket of the service manager if there is one, because that socket
    /// can have a larger receive buffer than an unprivileged process may set.
    private func makeMonitor() -> PathMonitor {
        guard let socket = inherited.netlink else { return .shared }
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
        limits.stopGrace = configuration.stopGrace
        let history = openHistory()
        let hooks = HookReporter(logger: logger, history: history, queue: queue)
        await hooks.use(configuration.hooks)
        let hosts = HostMonitor(
            monitor: monitor,
            history: history,
            hooks: hooks,
            // A busy queue must not delay the monitor.
            onSuccess: { origins in Task { await queue.probeSucceeded(origins) } },
            logger: logger
        )
        let view = HostsView(monitor: hosts, history: history)
        let state = ServiceState(
            queue: queue,
            monitor: monitor,
            hosts: view,
            version: configuration.version,
            configuration: inUse
        )
        let access = AccessRules(policy: configuration.access, quota: configuration.quota)
        let defaults = RequestDefaults(configuration.requestDefaults)
        let server = try makeServer(state.routes(access: access, defaults: defaults), access, limits)
        let webServer = try configuration.web.map { (address) throws(ControlSocketError) in
            let router = ControlRouter(state.readOnlyRoutes, hosts: HostAllowList(address))
            return try ControlServer(
                address: address,
                router: router,
                limits: limits,
                logger: logger,
                inherited: inherited.web
            )
        }
        let unused = inherited.unused
        if unused > 0 {
            logger.warning("sockets of the service manager that the service does not use: \(unused)")
        }
        // After the first lookup, the status line and the first attempts know the path.
        _ = await monitor.statuses(of: .general).first { _ in true }
        // Obtained before the start, so that the log has the requests that the start changes.
        let events = try await queue.events
        try await queue.start()
        async let isLogged: Void = QueueLog(logger).run(events)
        async let _ = state.meter.run(events)
        let pusher = MetricsPusher(
            queue: queue,
            version: configuration.version,
            meter: state.pushes,
            logger: logger,
            collect: { try await state.metrics() }
        )
        async let _ = pusher.run(events)
        await pusher.use(configuration.metricsPush)
        let monitoring = Task { await hosts.run(configuration.hosts) }
        let parts = Reloadable(
            hosts: hosts,
            history: history,
            hooks: hooks,
            server: server,
            webServer: webServer,
            access: access,
            queue: queue,
            defaults: defaults,
            pusher: pusher
        )
        // Before the first reload, which stores its values, too.
        if inUse.fallback == nil { await keep(configuration.values) }
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
        async let areProgramsStopped: Void = hooks.stopPrograms()
        // The monitor stops before the queue, which stores the webhooks of its last changes. Otherwise the history
        // would record the end of an outage that no hook has reported.
        monitoring.cancel()
        await monitoring.value
        await hooks.stop()
        await pusher.stop()
        await queue.stop()
        await isLogged
        await isServerStopped
        await isWebStopped
        await areProgramsStopped
        if let failure { throw failure }
        logger.info("stopped")
    }

    /// Opens the history of the hosts. The service runs without it if it is damaged, because nothing else needs the
    /// history.
    private func openHistory() -> HostHistory? {
        let path = "\(configuration.stateDirectory)/history.sqlite"
        do {
            return try HostHistory(path: path, retention: configuration.historyRetention)
        } catch {
            logger.warning("the uptime of the hosts is not recorded: \(error)")
            return nil
        }
    }

    /// Creates the server of the control socket. It uses the socket of the service manager if there is one for its
    /// path.
    private func makeServer(
        _ routes: [ControlRouter.Route],
        _ access: AccessRules,
        _ limits: ControlServer.Limits
    ) throws(ControlSocketError) -> ControlServer {
        if inherited.control != nil { logger.info("using the service manager's control socket") }
        return try ControlServer(
            path: configuration.socket,
            permissions: configuration.access.socketPermissions,
            router: ControlRouter(routes, access: access),
            limits: limits,
            logger: logger,
            inherited: inherited.control
        ) { () throws(ControlSocketError) in try makeSocketDirectory() }
    }

    /// Creates the directory of the control socket. Other users may enter it (mode 0755), because the permissions of the
    /// socket itself control access. Missing parents are not created, because they suggest a mistyped path.
    private func makeSocketDirectory() throws(ControlSocketError) {
        guard let end = configuration.socket.lastIndex(of: "/"), end != configuration.socket.startIndex else {
            return
        }
        let directory = String(configuration.socket[..<end])
        do throws(SystemError) {
            try Directory.make(directory, mode: 0o755, withParents: false)
        } catch {
            throw .directory(path: directory, error)
        }
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

    func logFailure(_ error: SystemError?) {
        guard let error else { return }
        logger.warning("could not notify the service manager", metadata: ["error": "\(error)"])
    }
}

/// Reading the configuration again while the service runs.
extension NetwatchDaemon {
    /// The parts of the service that a reload changes.
    struct Reloadable {
        let hosts: HostMonitor
        let history: HostHistory?
        let hooks: HookReporter
        let server: ControlServer
        let webServer: ControlServer?
        let access: AccessRules
        let queue: OfflineQueue
        let defaults: RequestDefaults
        let pusher: MetricsPusher
    }

    func reload(_ parts: Reloadable) async -> ConfigurationReloads.Outcome {
        logFailure(notifier.notify(.reloading))
        defer { logFailure(notifier.notify(.ready)) }
        do {
            let new = try await inUse.read()
            let outcome = try await apply(new, to: parts)
            await keep(new.values)
            return outcome
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
        try parts.server.admit(new.access.socketPermissions, userConnections: new.userConnections)
        parts.access.replace(policy: new.access, quota: new.quota)
        await parts.queue.use(new.queue)
        for server in [parts.server, parts.webServer] { server?.use(stopGrace: new.stopGrace) }
        parts.defaults.replace(new.requestDefaults)
        parts.history?.use(retention: new.historyRetention)
        threshold.level = new.logLevel
        await parts.pusher.use(new.metricsPush)
        await parts.hooks.use(new.hooks)
        await parts.hosts.update(new.hosts)
        let keys = inUse.apply(new.values)
        logger.notice("the configuration was read again", metadata: ["hosts": "\(new.hosts.count)"])
        if !keys.isEmpty {
            let list = keys.map { "`\($0)`" }.joined(separator: ", ")
            logger.warning("these settings change only when the service is restarted: \(list)")
        }
        return .applied(hosts: new.hosts.count, restartKeys: keys, replacedKeys: replacedKeys(of: new.values))
    }

    /// Returns the keys that environment variables replace and whose values in files have changed since the start. Logs
    /// a warning about them.
    private func replacedKeys(of new: ConfigurationValues) -> [String] {
        let old = configuration.values.replaced
        let replaced = SettingTable.settings.filter { setting in
            new.replaced[setting.path].map { $0 != old[setting.path] } ?? false
        }
        if !replaced.isEmpty {
            let list = replaced.map { "`\($0.path)` (`\($0.variable)`)" }.joined(separator: ", ")
            logger.warning(
                "these settings of files have no effect, because environment variables replace them: \(list)"
            )
        }
        return replaced.map(\.path)
    }
}

/// The last good configuration.
extension NetwatchDaemon {
    /// Logs why the service uses its last good configuration, if it does.
    func logFallback() {
        guard let fallback = inUse.fallback else { return }
        let (kept, reason) = (fallback.kept.rfc3339, fallback.summary)
        logger.error(
            "the service uses its last good configuration of \(kept), because it cannot use its files: \(reason)"
        )
    }

    /// Stores the values with which the service runs as the last good configuration.
    func keep(_ values: ConfigurationValues) async {
        let file = LastGoodConfiguration(stateDirectory: configuration.stateDirectory)
        do throws(SystemError) {
            let damage = try await DispatchQueue.global().run { () throws(SystemError) in
                try file.keep(values)
            }
            inUse.keepingFailure = nil
            if let damage { logger.warning("\(damage); the file was moved to `\(file.path).damaged`") }
        } catch {
            inUse.keepingFailure = "\(error)"
            logger.warning("the configuration could not be stored as the last good one: \(error)")
        }
    }
}

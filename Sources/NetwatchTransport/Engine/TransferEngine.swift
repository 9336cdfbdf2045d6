internal import CNetwatchCurl
package import NetwatchEventLoop

/// Runs HTTP transfers with libcurl on a separate thread.
///
/// Names are resolved by ``NameResolver``, never by libcurl, which would start a thread for each lookup. Transfers
/// beyond the connection limit of a host wait in a ``HostLimiter``.
package actor TransferEngine {
    /// The interval at which multi handles without transfers are closed, with their connections: after one interval at
    /// the earliest, after two at the latest. libcurl would not reuse the connections after 118 s
    /// (`CURLOPT_MAXAGE_CONN`), but would keep them open.
    private static let sweepInterval = Duration.seconds(60)

    /// The engine that all sessions share. Its first transfer starts the threads. If descriptors or threads are
    /// exhausted, that transfer fails and the next one tries again.
    package static let shared = TransferEngine(startingLater: .shared)

    let loop: EventLoop
    let resolver: NameResolver
    let preferredAddresses = PreferredAddresses()
    private let watchdog = TurnWatchdog()
    private nonisolated let startup = RetriedOnce()
    private var transfers: [TransferID: EngineTransfer] = [:]
    private var origins = OriginCache()
    private var limiter = HostLimiter()
    private var multis = MultiTable()
    private var isSweeping = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates an engine and starts its thread.
    ///
    /// - Parameters:
    ///   - resolver: The resolver for host names.
    ///   - networkNamespace: The namespace for connections; `nil`, the default, is the process's own.
    /// - Throws: ``SystemError`` if descriptors or threads are exhausted, or the namespace cannot be entered.
    package init(
        resolver: NameResolver = .shared,
        networkNamespace: String? = nil
    ) throws(SystemError) {
        loop = try EventLoop(label: "nw-curl", networkNamespace: networkNamespace)
        self.resolver = resolver
        try startThreads()
    }

    private init(startingLater resolver: NameResolver) {
        loop = EventLoop(startingLater: "nw-curl")
        self.resolver = resolver
    }

    /// Initializes libcurl and starts the threads, unless that was done before.
    ///
    /// - Throws: ``SystemError`` if descriptors, threads or memory are exhausted; ``SystemError/forked``.
    nonisolated func startThreads() throws(SystemError) {
        // In a child of fork(2) another thread's lock may stay locked for ever.
        try loop.checkProcess()
        try startup.run { () throws(SystemError) in
            try CurlLibrary.initialize()
            try loop.start()
            try watchdog.start()
        }
    }

    isolated deinit {
        defer { watchdog.stop() }
        for transfer in transfers.values where transfer.stage != .running {
            transfer.end(
                TransferFailure(CURLE_ABORTED_BY_CALLBACK, .resolve, "the transfer engine was released"),
                loop
            )
        }
        multis.closeAll()
    }

    nonisolated func perform(_ body: @escaping @Sendable (isolated TransferEngine) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: Transfer lifecycle

    func add(
        _ id: TransferID,
        _ request: TransferRequest,
        _ pool: TransferPool.ID,
        _ connectionsPerHost: Int,
        _ reporter: TransferReporter
    ) {
        do throws(TransferFailure) {
            let target = try TransferTarget(request, &origins)
            let key = HostLimiter.Key(pool: pool, origin: request.unixSocketPath ?? target.url.origin)
            let transfer = EngineTransfer(key, target, reporter)
            let mayBegin = limiter.add(
                id,
                to: key,
                limit: connectionsPerHost,
                priority: request.urgency,
                probesFirst: target.url.isSecure && request.binding == nil
            )
            if !mayBegin { transfer.timer = waitingTimer(for: id, after: request.totalTimeout) }
            transfers[id] = transfer
            if mayBegin { begin([id]) }
        } catch {
            reporter.end(error)
        }
    }

    private func waitingTimer(for id: TransferID, after timeout: Duration?) -> EventLoop.Timer? {
        guard let timeout else { return nil }
        return loop.schedule(at: .now + timeout) { [weak self] in
            self?.assumeIsolated {
                let message = "timed out while other transfers used all connections to the host"
                $0.end(id, CURLE_OPERATION_TIMEDOUT, message)
            }
        }
    }

    /// Begins transfers that have waited. When one fails immediately, begins the transfers that may take its place.
    private func begin(_ ids: [TransferID]) {
        var ids = ids[...]
        while let id = ids.popFirst() {
            guard let transfer = transfers[id], transfer.stage == .waiting else { continue }
            transfer.begin(loop)
            ids += attempt(id) { () throws(TransferFailure) in try begin(id, transfer) }
        }
    }

    /// Begins a transfer. An open connection is tried before the name lookup, because it works even if the name servers
    /// do not.
    private func begin(_ id: TransferID, _ transfer: EngineTransfer) throws(TransferFailure) {
        let target = transfer.target
        // This comes first, because it rejects a trust that cannot be evaluated.
        let multi = try multi(for: id, transfer)
        let mayShare = target.mayShareConnections && multi.reserveConnection(to: target.url.origin, for: id)
        if mayShare || !target.needsConnector { try launch(id) } else { connect(id, transfer) }
    }

    /// Runs a step of a transfer, and ends the transfer if the step fails. Returns the transfers that may begin in its
    /// place.
    private func attempt(
        _ id: TransferID,
        _ step: () throws(TransferFailure) -> Void
    ) -> [TransferID] {
        do throws(TransferFailure) {
            try step()
            return []
        } catch {
            return fail(id, error)
        }
    }

    /// Ends a transfer that libcurl does not run. Returns the transfers that may begin in its place.
    private func fail(_ id: TransferID, _ failure: TransferFailure) -> [TransferID] {
        guard let transfer = transfers[id] else { return [] }
        // Before `remove`, which may close the transfer's multi handle.
        transfer.end(failure, loop)
        return remove(id)
    }

    /// Lets libcurl run a transfer.
    ///
    /// - Parameter connection: The connection to use; `nil` to reuse an open one, or to connect to a unix socket.
    private func launch(_ id: TransferID, over connection: TCPSocket? = nil) throws(TransferFailure) {
        guard let transfer = transfers[id] else { return }
        let target = transfer.remainingTarget(isConnected: connection != nil)
        if let curlTransfer = transfer.curlTransfer, let connection {
            guard let multi = transfer.multi.flatMap({ multis[$0] }) else {
                preconditionFailure("a multi handle ended before its transfer")
            }
            try curlTransfer.reconnect(over: connection, target: target, paused: transfer.paused)
            try multi.add(curlTransfer)
        } else {
            let multi = try multi(for: id, transfer)
            let curlTransfer = try Transfer(
                id: id,
                target: target,
                reporter: transfer.reporter,
                paused: transfer.paused,
                connection: connection,
                context: multi
            ) { [weak self] change in
                self?.perform { $0.changePause(of: id, change) }
            }
            try multi.add(curlTransfer)
        }
        transfer.stage = .running
    }

    /// Ends a transfer because of a cancellation or a timeout.
    func end(_ id: TransferID, _ code: CURLcode, _ message: String) {
        guard let transfer = transfers[id] else { return }
        switch transfer.stage {
        case .waiting:
            limiter.removeWaiting(id, from: transfer.key)
            transfers[id] = nil
            transfer.end(.refused(code, message), loop)
        case .connecting: begin(fail(id, .connectCancelled(transfer.stopConnecting(), message)))
        case .running:
            guard let multi = transfer.multi else { return }
            multis[multi]?.discardUnacknowledged(of: id)
            multis[multi]?.remove(id)?.finish(code, message: message)
            remove([id], from: multi)
        }
    }

    /// Removes a transfer that had begun. Returns the transfers that may begin in its place.
    private func remove(_ id: TransferID) -> [TransferID] {
        guard let transfer = transfers.removeValue(forKey: id) else { return [] }
        transfer.hasEnded()
        if let multi = transfer.multi {
            multis[multi]?.forget(id)
            multis.closeIfDone(multi)
        }
        return limiter.transferEnded(transfer.key)
    }

    // MARK: Connecting

    /// Connects to the host of a transfer.
    ///
    /// - Parameter curlTransfer: The transfer, if libcurl has run it before.
    private func connect(_ id: TransferID, _ transfer: EngineTransfer, _ curlTransfer: Transfer? = nil) {
        let url = transfer.target.url
        let connector = HostConnector(
            to: url.host,
            port: UInt16(url.port),
            loop: loop,
            resolver: resolver,
            preferredAddresses: preferredAddresses
        ) { [weak self] event in
            self?.assumeIsolated { $0.handle(event, of: id) }
        }
        transfer.connect(curlTransfer, with: connector)
    }

    private func handle(_ event: HostConnector.Event, of id: TransferID) {
        guard let transfer = transfers[id], transfer.stage == .connecting else { return }
        begin(
            attempt(id) { () throws(TransferFailure) in
                switch event {
                case .resolved(let outcome): try transfer.lookedUp(outcome)
                case .connected(let connection):
                    transfer.isConnected(to: connection.address)
                    try launch(id, over: connection.socket)
                case .failed(let failure): throw .notConnected(failure)
                case .lookupTimedOut(let hasStarted): throw .lookupTimedOut(hasStarted: hasStarted)
                case .connectTimedOut(let timeout, let failure):
                    throw .connectTimedOut(after: timeout, failure)
                }
            }
        )
    }

    /// See ``TransferPool/restartStalled(to:)``.
    func restartStalledTransfers(to host: String, of pool: TransferPool.ID) {
        for (id, transfer) in transfers
        where transfer.key.pool == pool && transfer.target.url.bareHost == host {
            restartIfStalled(id, transfer)
        }
    }

    /// The kernel repeats lost packets after 0.2 s at the earliest, and those that open a connection after a second.
    private func restartIfStalled(_ id: TransferID, _ transfer: EngineTransfer) {
        switch transfer.stage {
        case .waiting: break
        case .connecting: transfer.reconnect()
        case .running:
            let multi = transfer.multi.flatMap { multis[$0] }
            if let curlTransfer = multi?.leaveStalledConnection(id) { connect(id, transfer, curlTransfer) }
        }
    }

    // MARK: Pauses

    /// - Parameter directions: The directions to pause; `nil` to resume all.
    func setPause(of id: TransferID, _ directions: TransferPause?) {
        switch transfers[id]?.stage {
        case .waiting, .connecting: transfers[id]?.setPause(directions)
        case .running:
            changePause(of: id) { transfer in directions.map(transfer.pause) ?? transfer.resume() }
        case nil: break
        }
    }

    func stopReceiving(_ id: TransferID) {
        runningMulti(of: id).flatMap { multis[$0] }?.stopReceiving(id)
    }

    private func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) {
        guard let multi = runningMulti(of: id) else { return }
        advance(multi) { $0.changePause(of: id, change) }
    }

    private func runningMulti(of id: TransferID) -> MultiTable.ID? {
        guard let transfer = transfers[id], transfer.stage == .running else { return nil }
        return transfer.multi
    }

    // MARK: Multi handles

    /// Returns the multi handle for a transfer. It is a new one if the pool's connections were renewed meanwhile.
    private func multi(for id: TransferID, _ transfer: EngineTransfer) throws(TransferFailure) -> CurlMulti {
        let target = transfer.target
        let sharing = multis.sharing(
            transfer.key.pool,
            // Without TLS, trust does not matter, so all such transfers can share connections.
            target.url.isSecure ? target.request.trust : .standard,
            boundTransfer: target.request.binding == nil ? nil : id
        )
        let (multiID, multi) = try multis.handle(for: sharing) { newID throws(TransferFailure) in
            try makeMulti(newID, TrustContext(sharing.trust))
        }
        transfer.multi = multiID
        sweepLater()
        return multi
    }

    private func makeMulti(
        _ id: MultiTable.ID,
        _ trust: TrustContext
    ) throws(TransferFailure) -> CurlMulti {
        try CurlMulti(
            loop: loop,
            watchdog: watchdog,
            trust: trust,
            onReadiness: { [weak self] descriptor, readiness in
                self?.assumeIsolated { engine in
                    engine.advance(id) { $0.descriptorIsReady(descriptor, readiness) }
                }
            },
            onTimeout: { [weak self] in
                self?.assumeIsolated { engine in engine.advance(id) { $0.timeoutHasPassed() } }
            },
            onIdleCheck: { [weak self] in
                self?.assumeIsolated { engine in engine.advance(id) { $0.endIdleTransfers() } }
            }
        )
    }

    private func advance(_ id: MultiTable.ID, _ step: (CurlMulti) -> CurlMulti.Turn) {
        guard let multi = multis[id] else { return }
        let turn = step(multi)
        for (transfer, reached) in turn.milestones {
            guard let transfer = transfers[transfer] else { continue }
            if reached.contains(.answered) { transfer.hasResponse() }
            if reached.contains(.connected) { begin(limiter.transferConnected(transfer.key)) }
            if reached.contains(.multiplexed) { begin(limiter.setMultiplexed(transfer.key)) }
        }
        remove(turn.ended, from: id)
        for curlTransfer in turn.unconnected {
            if let transfer = transfers[curlTransfer.id] { connect(curlTransfer.id, transfer, curlTransfer) }
        }
    }

    /// Removes transfers that have ended. Closes their multi handle if these were its last transfers and it will get no
    /// more.
    private func remove(_ ended: [TransferID], from id: MultiTable.ID) {
        let next = ended.flatMap { remove($0) }
        multis.closeIfDone(id)
        begin(next)
    }

    /// See ``MultiTable/retire(_:)``.
    func retireMultis(of pool: TransferPool.ID) {
        multis.retire(pool)
    }

    /// See ``MultiTable/forget(_:hasTransfers:)``.
    func forgetMultis(of pool: TransferPool.ID) {
        multis.forget(pool, hasTransfers: hasTransfers(of: pool))
    }

    /// The number of multi handles.
    var multiCount: Int { multis.count }

    private func hasTransfers(of pool: TransferPool.ID) -> Bool {
        transfers.values.contains { $0.key.pool == pool }
    }

    private func sweepLater() {
        guard !isSweeping else { return }
        isSweeping = true
        loop.schedule(at: .now + Self.sweepInterval) { [weak self] in
            self?.assumeIsolated { $0.sweep() }
        }
    }

    private func sweep() {
        isSweeping = false
        multis.sweep(hasTransfers: hasTransfers)
        if multis.count > 0 { sweepLater() }
    }
}

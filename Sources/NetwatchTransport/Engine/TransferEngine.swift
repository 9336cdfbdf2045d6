internal import CNetwatchCurl
package import NetwatchEventLoop

/// An engine that runs HTTP transfers with libcurl on a separate thread.
///
/// ``NameResolver`` resolves all names. libcurl never does, because it would start a thread for each lookup. Transfers
/// that exceed the connection limit of their host wait in a ``HostLimiter``.
package actor TransferEngine {
    /// The interval of the sweep that closes unused multi handles with their connections. A handle is closed after one
    /// to two intervals without a transfer.
    ///
    /// libcurl does not reuse a connection that was idle for 118 s (`CURLOPT_MAXAGE_CONN`), but keeps it open.
    private static let sweepInterval = Duration.seconds(60)

    /// The engine that all sessions share. Its threads start with the first transfer. If descriptors or threads are
    /// exhausted, that transfer fails, and the next one tries again.
    package static let shared = TransferEngine(startingLater: .shared)

    let loop: EventLoop
    let resolver: NameResolver
    private let givenCapabilities: TransferCapabilities?
    let preferredAddresses = PreferredAddresses()
    private let watchdog = TurnWatchdog()
    private nonisolated let startup = RetriedOnce()
    var transfers: [TransferID: EngineTransfer] = [:]
    var questions = TrustQuestions()
    private var origins = OriginCache()
    private var http1Origins = HTTP1Origins()
    let limiter = HostLimiter()
    var multis = MultiTable()
    private var isSweeping = false

    /// Evaluated by transfers, on the engine's thread: `TransferCapabilities.current` loads the libraries of decoders.
    private var capabilities: TransferCapabilities { givenCapabilities ?? .current }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates an engine and starts its threads.
    ///
    /// - Parameters:
    ///   - resolver: The resolver for host names. Default: the resolver that the process shares.
    ///   - networkNamespace: The path of the network namespace for connections (`/run/netns/NAME`). Default `nil`: the
    ///     namespace of the process.
    ///   - capabilities: The features of libcurl by which the engine refuses transfers. Default `nil`: those of the
    ///     loaded library. Tests pass others.
    /// - Throws: ``SystemError`` if descriptors or threads are exhausted, or if the namespace cannot be entered.
    package init(
        resolver: NameResolver = .shared,
        networkNamespace: String? = nil,
        capabilities: TransferCapabilities? = nil
    ) throws(SystemError) {
        loop = try EventLoop(label: "nw-curl", networkNamespace: networkNamespace)
        self.resolver = resolver
        givenCapabilities = capabilities
        try startThreads()
    }

    private init(startingLater resolver: NameResolver) {
        loop = EventLoop(startingLater: "nw-curl")
        self.resolver = resolver
        givenCapabilities = nil
    }

    /// Initializes libcurl and starts the threads. Has no effect if that was done before.
    ///
    /// - Throws: ``SystemError`` if descriptors, threads or memory are exhausted; ``SystemError/forked`` in a child of
    ///   `fork(2)`.
    nonisolated func startThreads() throws(SystemError) {
        // This comes before any lock: in a child of fork(2), a lock that another thread held is locked for ever.
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
        loop.execute(on: self, body)
    }

    /// Waits until the engine's thread has run everything that was submitted before. Returns immediately if the thread
    /// was not started yet. May be called from any task.
    package nonisolated func awaitTurn() async {
        guard startup.hasSucceeded else { return }
        await withCheckedContinuation { continuation in perform { _ in continuation.resume() } }
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
            let requiresHTTP1 = target.url.isSecure && request.usesHTTP1
            let key = HostLimiter.Key(
                pool: pool,
                origin: request.unixSocketPath ?? target.url.origin,
                requiresHTTP1: requiresHTTP1
            )
            let (host, mayBegin) = limiter.add(
                id,
                to: key,
                limit: connectionsPerHost,
                priority: request.urgency,
                probesFirst: target.url.isSecure && !requiresHTTP1 && request.binding == nil
            )
            let transfer = EngineTransfer(host, target, reporter)
            if !mayBegin { transfer.timer = waitingTimer(for: id, after: request.totalTimeout) }
            transfers[id] = transfer
            if mayBegin { begin(beginAdmitted(id)) }
        } catch {
            reporter.end(error)
        }
    }

    /// Returns the timer of the total timeout of a transfer that waits for others.
    func waitingTimer(for id: TransferID, after timeout: Duration?) -> EventLoop.Timer? {
        guard let timeout else { return nil }
        return loop.scheduleLimit(timeout) { [weak self] in
            self?.assumeIsolated {
                let message = "timed out while other transfers used all connections to the host"
                $0.end(id, CURLE_OPERATION_TIMEDOUT, message)
            }
        }
    }

    /// Begins transfers that the limiter has admitted. If one fails immediately, begins the transfers that take its
    /// place.
    func begin(_ ids: [TransferID]) {
        var ids = ids[...]
        while let id = ids.popFirst() { ids += beginAdmitted(id) }
    }

    /// Begins a transfer that the limiter has admitted. If it fails immediately, returns the transfers that may begin
    /// in its place.
    private func beginAdmitted(_ id: TransferID) -> [TransferID] {
        guard let transfer = transfers[id], transfer.stage == .waiting else { return [] }
        transfer.begin(loop)
        return attempt(id) { () throws(TransferFailure) in try begin(id, transfer) }
    }

    /// Begins a transfer. An open connection is tried before the name lookup, because it works even if the name servers
    /// are silent. A transfer that libcurl ran before may have a retired multi handle, whose connections are outdated.
    private func begin(_ id: TransferID, _ transfer: EngineTransfer) throws(TransferFailure) {
        let target = transfer.target
        // This comes first, because it throws if the trust cannot be evaluated.
        let multi = try multi(for: id, transfer)
        let isCurrent = transfer.multi.map { multis.isCurrent($0) } ?? false
        let mayShare =
            target.mayShareConnections && isCurrent
            && multi.reserveConnection(to: target.url.origin, for: id)
        if mayShare || !target.needsConnector {
            try launch(id, transfer, on: multi)
        } else {
            connect(id, transfer)
        }
    }

    /// Runs a step of a transfer. Ends the transfer if the step throws. Returns the transfers that may begin in its
    /// place.
    func attempt(
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
    func fail(_ id: TransferID, _ failure: TransferFailure) -> [TransferID] {
        guard let transfer = transfers[id] else { return [] }
        // This comes before `remove`, which may close the multi handle of the transfer.
        transfer.end(failure, loop)
        return remove(id)
    }

    /// Passes a transfer to libcurl, which runs it.
    ///
    /// - Parameter connection: The connection to use; `nil` to reuse an open one, or for a unix socket.
    func launch(_ id: TransferID, over connection: TCPSocket? = nil) throws(TransferFailure) {
        guard let transfer = transfers[id] else { return }
        try launch(id, transfer, on: multi(for: id, transfer), over: connection)
    }

    private func launch(
        _ id: TransferID,
        _ transfer: EngineTransfer,
        on multi: CurlMulti,
        over connection: TCPSocket? = nil
    ) throws(TransferFailure) {
        let deadlines = transfer.deadlines(isConnected: connection != nil)
        if let curlTransfer = transfer.curlTransfer {
            try curlTransfer.addAgain(over: connection, deadlines, paused: transfer.paused)
            try multi.add(curlTransfer)
        } else {
            let curlTransfer = try Transfer(
                id: id,
                target: transfer.target,
                deadlines: deadlines,
                reporter: transfer.reporter,
                paused: transfer.paused,
                connection: connection,
                context: multi
            )
            try multi.add(curlTransfer)
        }
        transfer.stage = .running
    }

    /// Ends a transfer that was cancelled or has timed out.
    func end(_ id: TransferID, _ code: CURLcode, _ message: String) {
        guard let transfer = transfers[id] else { return }
        switch transfer.stage {
        case .waiting:
            limiter.removeWaiting(id, from: transfer.host)
            // This comes before `forget`, which may close the multi handle of the transfer.
            transfer.end(.refused(code, message), loop)
            forget(id, transfer)
        case .connecting: begin(fail(id, .connectCancelled(transfer.stopConnecting(), message)))
        case .deciding:
            questions.remove(id)
            begin(fail(id, TransferFailure(code, .tls, message)))
        case .running:
            guard let multi = transfer.multi else { return }
            multis[multi]?.discardUnacknowledged(of: id)
            multis[multi]?.remove(id)?.finish(code, message: message)
            remove([id], from: multi)
        }
    }

    /// Removes a transfer that had begun. Returns the transfers that may begin in its place.
    private func remove(_ id: TransferID) -> [TransferID] {
        guard let transfer = transfers[id] else { return [] }
        transfer.hasEnded()
        forget(id, transfer)
        return limiter.transferEnded(transfer.host)
    }

    /// Forgets a transfer that has ended. Closes its multi handle if this has no transfers left and will get no new
    /// ones.
    private func forget(_ id: TransferID, _ transfer: EngineTransfer) {
        transfers[id] = nil
        guard let multi = transfer.multi else { return }
        multis[multi]?.forget(id)
        multis.closeIfDone(multi)
    }

    // MARK: Multi handles

    /// Returns the multi handle for a transfer. If the pool's connections were renewed while the transfer was
    /// connecting, the handle differs from the earlier handle. A transfer that libcurl ran before keeps its handle.
    private func multi(for id: TransferID, _ transfer: EngineTransfer) throws(TransferFailure) -> CurlMulti {
        if let known = transfer.multi, transfer.curlTransfer != nil || multis.isCurrent(known) {
            guard let multi = multis.handle(again: known) else {
                preconditionFailure("a multi handle ended before its transfer")
            }
            return multi
        }
        let target = transfer.target
        let sharing = multis.sharing(
            transfer.host.key.pool,
            // Without TLS, trust does not matter. All such transfers can share connections, so they get the same trust
            // here.
            target.url.isSecure ? target.request.trust : .standard,
            boundTransfer: target.request.binding == nil ? nil : id,
            usesHTTP1: target.url.isSecure && usesHTTP1(transfer.host)
        )
        let (multiID, multi) = try multis.handle(for: sharing) { newID throws(TransferFailure) in
            try makeMulti(newID, TrustContext(sharing.trust, capabilities), usesHTTP1: sharing.usesHTTP1)
        }
        transfer.multi = multiID
        sweepLater()
        return multi
    }

    private func makeMulti(
        _ id: MultiTable.ID,
        _ trust: TrustContext,
        usesHTTP1: Bool
    ) throws(TransferFailure) -> CurlMulti {
        try CurlMulti(
            loop: loop,
            watchdog: watchdog,
            trust: trust,
            usesHTTP1: usesHTTP1,
            onReadiness: { [weak self] descriptor, readiness in
                guard let self else { return }
                IsolatedCall(self) { engine in
                    engine.advance(id) { $0.descriptorIsReady(descriptor, readiness) }
                }()
            },
            onTimeout: { [weak self] in
                guard let self else { return }
                IsolatedCall(self) { engine in engine.advance(id) { $0.timeoutHasPassed() } }()
            },
            onLimitCheck: { [weak self] in
                self?.assumeIsolated { engine in engine.advance(id) { $0.endLateTransfers() } }
            },
            later: { [weak self] transfer, change in
                self?.perform { $0.changePause(of: transfer, change) }
            }
        )
    }

    func advance(_ id: MultiTable.ID, _ step: (CurlMulti) -> CurlMulti.Turn) {
        guard let multi = multis[id] else { return }
        let turn = step(multi)
        for (transfer, reached) in turn.milestones {
            guard let transfer = transfers[transfer] else { continue }
            if reached.contains(.responded) { transfer.hasResponse() }
            if reached.contains(.connected) { begin(limiter.endProbing(transfer.host)) }
            // A response over HTTP/2 may arrive after another one has shown that HTTP/2 fails.
            if reached.contains(.multiplexed), !usesHTTP1(transfer.host) {
                begin(limiter.setMultiplexed(transfer.host))
            }
        }
        for transfer in turn.failedVersion { changeVersion(of: transfer, from: multi) }
        remove(turn.ended, from: id)
        for curlTransfer in turn.unconnected { takeBack(curlTransfer) }
    }

    /// Makes later transfers to the origin of a transfer use the other version of HTTP, because this one has failed.
    private func changeVersion(of id: TransferID, from multi: CurlMulti) {
        guard let origin = transfers[id]?.host.key.origin else { return }
        guard !multi.usesHTTP1 else { return http1Origins.remove(origin) }
        http1Origins.insert(origin, at: .now)
        limiter.endMultiplexing(to: origin)
    }

    private func usesHTTP1(_ host: HostLimiter.Host) -> Bool {
        host.key.requiresHTTP1 || http1Origins.contains(host.key.origin, at: .now)
    }

    /// Removes transfers that have ended. Closes their multi handle if it has no transfers left and will get no new
    /// ones.
    private func remove(_ ended: [TransferID], from id: MultiTable.ID) {
        let next = ended.flatMap { remove($0) }
        multis.closeIfDone(id)
        begin(next)
    }

    /// Retires the multi handles of a pool, so that later transfers use new connections; see ``MultiTable/retire(_:)``.
    func retireMultis(of pool: TransferPool.ID) {
        multis.retire(pool)
    }

    /// Retires the multi handles of a pool that was released; see ``MultiTable/forget(_:hasTransfers:)``.
    func forgetMultis(of pool: TransferPool.ID) {
        multis.forget(pool, hasTransfers: hasTransfers(of: pool))
    }

    /// The number of multi handles. For tests.
    var multiCount: Int { multis.count }

    private func hasTransfers(of pool: TransferPool.ID) -> Bool {
        transfers.values.contains { $0.host.key.pool == pool }
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

internal import CNetwatchCurl
package import NetwatchEventLoop
internal import Synchronization

/// Identifies a transfer within the process.
package struct TransferID: Hashable, Sendable {
    private static let next = Atomic<UInt64>(0)

    private let rawValue: UInt64

    init() {
        rawValue = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
    }
}

/// Runs HTTP transfers with libcurl on a separate thread.
///
/// Names are resolved by ``NameResolver``, never by libcurl, which would start a thread for each lookup. Transfers
/// beyond the connection limit of a host wait in a ``WaitingRoom``.
package actor TransferEngine {
    enum Stage {
        /// Waiting for other transfers to the same host.
        case waiting
        /// Waiting for the host's addresses.
        case lookingUp
        /// Waiting for a connection.
        case connecting
        case underWay
    }

    struct Entry {
        let door: WaitingRoom.Door
        let prospect: Prospect
        var stage: Stage
        /// The multi handle that runs the transfer, once there is one.
        var multi: MultiTable.ID?
    }

    /// The interval at which multi handles without transfers are closed, with their connections: after one interval at
    /// the earliest, after two at the latest. libcurl would not reuse the connections after 118 s
    /// (`CURLOPT_MAXAGE_CONN`), but would keep them open.
    private static let sweepInterval = Duration.seconds(60)

    /// The engine that all sessions share. Its first transfer starts the threads. If descriptors or threads are
    /// exhausted, that transfer fails and the next one tries again.
    package static let shared = TransferEngine(startingLater: .shared)

    let loop: EventLoop
    let resolver: NameResolver
    let winners = ConnectionWinners()
    private let watchdog = TurnWatchdog()
    private nonisolated let isBeginning = Mutex(())
    private nonisolated let hasBegun = Atomic(false)
    var entries: [TransferID: Entry] = [:]
    private var origins = OriginCache()
    private var room = WaitingRoom()
    var multis = MultiTable()
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
        try begin()
    }

    private init(startingLater resolver: NameResolver) {
        loop = EventLoop(startingLater: "nw-curl")
        self.resolver = resolver
    }

    /// Initializes libcurl and starts the threads, unless that was done before.
    ///
    /// - Throws: ``SystemError`` if descriptors, threads or memory are exhausted; ``SystemError/forked``.
    nonisolated func begin() throws(SystemError) {
        // In a child of fork(2) another thread's lock may stay locked for ever.
        try loop.checkProcess()
        guard !hasBegun.load(ordering: .acquiring) else { return }
        let result = isBeginning.withLock { _ -> Result<Void, SystemError> in
            guard !hasBegun.load(ordering: .relaxed) else { return .success(()) }
            return Result { () throws(SystemError) in
                try CurlLibrary.initialize()
                try loop.start()
                try watchdog.start()
                hasBegun.store(true, ordering: .releasing)
            }
        }
        try result.get()
    }

    isolated deinit {
        defer { watchdog.stop() }
        for entry in entries.values where entry.stage != .underWay {
            entry.prospect.timer.map(loop.cancel)
            entry.prospect.lookup.map { _ = resolver.abandon($0) }
            entry.prospect.end(.duringLookup(CURLE_ABORTED_BY_CALLBACK, "the transfer engine is gone"))
        }
        multis.closeAll()
    }

    // MARK: From any thread

    /// Whether the caller runs on the engine's thread.
    package nonisolated var isCurrent: Bool { loop.isCurrent }

    /// Starts a transfer in the common pool; see ``TransferPool/start(_:deliver:)``.
    @discardableResult
    package nonisolated func start(
        _ request: TransferRequest,
        deliver: @escaping @Sendable (TransferEvent) -> Void
    ) -> TransferID {
        start(request, .common, TransferPool.defaultConnectionsPerHost) { for event in $0 { deliver(event) } }
    }

    nonisolated func start(
        _ request: TransferRequest,
        _ pool: TransferPool.ID,
        _ connectionsPerHost: Int,
        _ deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) -> TransferID {
        let id = TransferID()
        let caller = TransferCaller(of: request, startedAt: .now, deliver: deliver)
        do throws(SystemError) {
            try begin()
        } catch {
            caller.end(.notBegun(error))
            return id
        }
        perform { $0.enter(id, request, pool, connectionsPerHost, caller) }
        return id
    }

    /// Ends a transfer with code 42. Has no effect after the end.
    package nonisolated func cancel(_ id: TransferID) {
        perform { $0.end(id, CURLE_ABORTED_BY_CALLBACK, "cancelled") }
    }

    /// Pauses directions of a transfer, in addition to those already paused, in any stage.
    ///
    /// The name lookup and connecting continue, the head of the request is sent, and the head of the response may
    /// arrive. Once the engine has handled the call, no body data is read or delivered. libcurl keeps what it had
    /// received (16 KiB, or what 7 KiB decode to), and with HTTP/2 up to the 32 MiB of its receive window. The rest
    /// waits in the kernel and on the server.
    ///
    /// The idle timeout restarts with ``resume(_:)``; other timeouts keep running. While receiving is paused, a server
    /// that has gone away is not noticed.
    package nonisolated func pause(_ id: TransferID, _ what: TransferPause) {
        // If this is called from `deliver`, the caller gets no more of the body in this turn.
        if what.contains(.receiving), loop.isCurrent { assumeIsolated { $0.hold(id) } }
        perform { $0.setPause(of: id, what) }
    }

    /// Resumes all directions paused by ``pause(_:_:)``.
    package nonisolated func resume(_ id: TransferID) {
        perform { $0.setPause(of: id, nil) }
    }

    /// Renews the connections of the common pool; see ``TransferPool/renewConnections()``.
    package nonisolated func renewConnections() {
        renewConnections(of: .common)
    }

    nonisolated func renewConnections(of pool: TransferPool.ID) {
        resolver.renew()
        winners.removeAll()
        dropConnections(of: pool)
    }

    nonisolated func dropConnections(of pool: TransferPool.ID) {
        perform { $0.multis.retire(pool) }
    }

    /// Closes a released pool's connections as soon as no transfer uses them.
    nonisolated func forget(_ pool: TransferPool.ID) {
        perform { $0.multis.forget(pool, hasTransfers: $0.hasTransfers(of: pool)) }
    }

    nonisolated func perform(_ body: @escaping @Sendable (isolated TransferEngine) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: Transfer lifecycle

    private func enter(
        _ id: TransferID,
        _ request: TransferRequest,
        _ pool: TransferPool.ID,
        _ connectionsPerHost: Int,
        _ caller: TransferCaller
    ) {
        do throws(TransferFailure) {
            let target = try TransferTarget(request, &origins)
            let door = WaitingRoom.Door(pool: pool, origin: request.unixSocketPath ?? target.url.origin)
            let prospect = Prospect(target, caller)
            let mayBegin = room.enter(
                id,
                by: door,
                limit: connectionsPerHost,
                priority: request.urgency,
                needsScout: target.url.isSecure && request.binding == nil
            )
            if !mayBegin {
                prospect.timer = timer(for: id, after: request.totalTimeout, "waiting for other transfers")
            }
            entries[id] = Entry(door: door, prospect: prospect, stage: .waiting)
            if mayBegin { begin([id]) }
        } catch {
            caller.end(error)
        }
    }

    /// Begins transfers that have waited. When one fails immediately, begins the transfers that may take its place.
    func begin(_ ids: [TransferID]) {
        var ids = ids[...]
        while let id = ids.popFirst() {
            guard let entry = entries[id], entry.stage == .waiting else { continue }
            entry.prospect.begin(loop)
            ids += attempt(id) { () throws(TransferFailure) in try begin(id, entry) }
        }
    }

    /// Begins a transfer. An open connection is tried before the name lookup, because it works even if the name servers
    /// do not.
    private func begin(_ id: TransferID, _ entry: Entry) throws(TransferFailure) {
        let target = entry.prospect.target
        // This comes first, because it rejects a trust that cannot be evaluated.
        let multi = try multi(for: id, entry)
        let mayShare = target.mayShareConnections && multi.reserveConnection(to: target.url.origin, for: id)
        if mayShare || !target.needsConnector { try launch(id) } else { connect(id) }
    }

    /// Runs a step of a transfer, and ends the transfer if the step fails. Returns the transfers that may begin in its
    /// place.
    func attempt(
        _ id: TransferID,
        _ step: () throws(TransferFailure) -> Void
    ) -> [TransferID] {
        do throws(TransferFailure) {
            try step()
            return []
        } catch {
            return abandon(id, error)
        }
    }

    /// Ends a transfer that libcurl does not run. Returns the transfers that may begin in its place.
    func abandon(_ id: TransferID, _ failure: TransferFailure) -> [TransferID] {
        guard let entry = entries[id] else { return [] }
        entry.prospect.timer.map(loop.cancel)
        // Before `leave`, which may close the transfer's multi handle.
        entry.prospect.end(failure)
        return leave(id)
    }

    func launch(_ id: TransferID, over connection: TCPSocket? = nil) throws(TransferFailure) {
        guard let entry = entries[id] else { return }
        let prospect = entry.prospect
        let target = prospect.remainingTarget(isConnected: connection != nil)
        if let transfer = prospect.transfer, let connection {
            try transfer.reconnect(
                over: connection,
                target: target,
                caller: prospect.caller,
                paused: prospect.paused
            )
            try transfer.multi.add(transfer)
        } else {
            let multi = try multi(for: id, entry)
            let transfer = try Transfer(
                id: id,
                target: target,
                caller: prospect.caller,
                paused: prospect.paused,
                connection: connection,
                multi: multi
            ) { [weak self] change in
                self?.perform { $0.changePause(of: id, change) }
            }
            try multi.add(transfer)
        }
        entries[id]?.stage = .underWay
    }

    /// Ends a transfer because of a cancellation or a timeout.
    func end(_ id: TransferID, _ code: CURLcode, _ message: String) {
        guard let entry = entries[id] else { return }
        switch entry.stage {
        case .waiting:
            entry.prospect.timer.map(loop.cancel)
            room.giveUp(id, by: entry.door)
            entries[id] = nil
            entry.prospect.end(.refused(code, message))
        case .lookingUp: begin(abandon(id, stopLookup(entry.prospect, code, message)))
        case .connecting: begin(abandon(id, .connectCancelled(entry.prospect.stopConnecting(), message)))
        case .underWay:
            guard let multi = entry.multi else { return }
            multis[multi]?.discardUnacknowledged(of: id)
            multis[multi]?.remove(id)?.finish(code, message: message)
            forget([id], of: multi)
        }
    }

    /// Forgets a transfer that had begun. Returns the transfers that may begin in its place.
    private func leave(_ id: TransferID) -> [TransferID] {
        guard let entry = entries.removeValue(forKey: id) else { return [] }
        hasEnded(entry.prospect)
        if let multi = entry.multi {
            multis[multi]?.forget(id)
            multis.closeIfDone(multi)
        }
        return room.leave(by: entry.door)
    }

    private func timer(for id: TransferID, after timeout: Duration?, _ what: String) -> EventLoop.Timer? {
        guard let timeout else { return nil }
        return loop.schedule(at: .now + timeout) { [weak self] in
            self?.assumeIsolated { $0.end(id, CURLE_OPERATION_TIMEDOUT, "\(what) timed out") }
        }
    }

    // MARK: Pauses

    /// - Parameter what: The directions to pause; `nil` to resume all.
    private func setPause(of id: TransferID, _ what: TransferPause?) {
        switch entries[id]?.stage {
        case .waiting, .lookingUp, .connecting: entries[id]?.prospect.setPause(what)
        case .underWay:
            changePause(of: id) { transfer in what.map(transfer.pause) ?? transfer.resume() }
        case nil: break
        }
    }

    private func hold(_ id: TransferID) {
        guard let entry = entries[id], entry.stage == .underWay, let multi = entry.multi else { return }
        multis[multi]?.hold(id)
    }

    private func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) {
        guard let entry = entries[id], entry.stage == .underWay, let multi = entry.multi else { return }
        advance(multi) { $0.changePause(of: id, change) }
    }

    // MARK: Multi handles

    /// Returns the multi handle for a transfer. It is a new one if the pool's connections were renewed meanwhile.
    private func multi(for id: TransferID, _ entry: Entry) throws(TransferFailure) -> CurlMulti {
        let target = entry.prospect.target
        let sharing = multis.sharing(
            entry.door.pool,
            // Without TLS, trust does not matter, so all such transfers can share connections.
            target.url.isSecure ? target.request.trust : .standard,
            boundTransfer: target.request.binding == nil ? nil : id
        )
        let (multiID, multi) = try multis.handle(for: sharing) { newID throws(TransferFailure) in
            try makeMulti(newID, TrustContext(sharing.trust))
        }
        entries[id]?.multi = multiID
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
            guard let door = entries[transfer]?.door else { continue }
            if reached.contains(.answered) { hasServed(transfer) }
            if reached.contains(.connected) { begin(room.open(door)) }
            if reached.contains(.multiplexed) { begin(room.widen(door)) }
        }
        forget(turn.ended, of: id)
        for transfer in turn.unconnected { connect(transfer.id, transfer) }
    }

    /// Forgets transfers that have ended. Closes their multi handle if these were its last transfers and it will get no
    /// more.
    private func forget(_ ended: [TransferID], of id: MultiTable.ID) {
        let next = ended.flatMap { leave($0) }
        multis.closeIfDone(id)
        begin(next)
    }

    /// The number of multi handles.
    var multiCount: Int { multis.count }

    private func hasTransfers(of pool: TransferPool.ID) -> Bool {
        entries.values.contains { $0.door.pool == pool }
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

extension TransferFailure {
    /// The engine could not start its threads.
    static func notBegun(_ error: SystemError) -> TransferFailure {
        TransferFailure(
            code: Int32(CURLE_FAILED_INIT.rawValue),
            osErrno: error.errno,
            phase: .prepare,
            message: "\(error)"
        )
    }

    static func duringLookup(_ code: CURLcode, _ message: String) -> TransferFailure {
        TransferFailure(code: Int32(code.rawValue), phase: .resolve, message: message)
    }

    static func noAddress(_ failure: NameResolver.Failure) -> TransferFailure {
        TransferFailure(
            code: Int32(CURLE_COULDNT_RESOLVE_HOST.rawValue),
            osErrno: failure.errno,
            resolverCode: failure.code,
            phase: .resolve,
            message: "\(failure)"
        )
    }
}

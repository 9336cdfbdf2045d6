internal import CNetwatchCurl
package import NetwatchEventLoop
internal import Synchronization

/// Names one transfer of the process.
package struct TransferID: Hashable, Sendable {
    private static let next = Atomic<UInt64>(0)

    private let rawValue: UInt64

    init() {
        rawValue = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
    }
}

/// Makes HTTP transfers with libcurl on one thread of its own.
///
/// Names are looked up by ``NameResolver``, never by libcurl, which would start a thread for each. Transfers beyond
/// what a host is to be bothered with wait in a ``WaitingRoom``.
package actor TransferEngine {
    private enum Stage {
        /// For others to the same host to end.
        case waiting(Prospect)
        /// For its host's addresses.
        case lookingUp(Prospect)
        case underWay(MultiTable.ID)

        /// What is known of a transfer that libcurl does not have yet.
        var prospect: Prospect? {
            switch self {
            case .waiting(let prospect), .lookingUp(let prospect): prospect
            case .underWay: nil
            }
        }
    }

    private struct Entry {
        let door: WaitingRoom.Door
        var stage: Stage
    }

    /// How often connections of pools without transfers are closed: after this time at the earliest, and twice of
    /// it at the latest. libcurl would not use them any more then (`CURLOPT_MAXAGE_CONN`, 118 s), but keep them.
    private static let sweepInterval = Duration.seconds(60)

    /// The engine that every session shares.
    ///
    /// Its first use starts the thread and ends the process when there are no descriptors or threads left
    /// for it: without it nothing here can work.
    package static let shared: TransferEngine = {
        do {
            return try TransferEngine()
        } catch {
            fatalError("netwatch cannot start its transfer thread: \(error)")
        }
    }()

    private static let initialized: CURLcode = curl_global_init(Int(CURL_GLOBAL_ALL))

    let loop: EventLoop
    let resolver: NameResolver
    private let watchdog: TurnWatchdog
    private var entries: [TransferID: Entry] = [:]
    private var origins = OriginCache()
    private var room = WaitingRoom()
    private var multis = MultiTable()
    private var isSweeping = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - resolver: Who looks names up.
    ///   - networkNamespace: The namespace that connections are made in; `nil`, the default, is the
    ///     process's own.
    /// - Throws: ``SystemError`` when there are no descriptors or threads left, or the namespace cannot be
    ///   entered.
    package init(
        resolver: NameResolver = .shared,
        networkNamespace: String? = nil
    ) throws(SystemError) {
        precondition(Self.initialized == CURLE_OK, "curl_global_init failed")
        loop = try EventLoop(label: "nw-curl", networkNamespace: networkNamespace)
        watchdog = try TurnWatchdog()
        self.resolver = resolver
    }

    isolated deinit {
        defer { watchdog.stop() }
        multis.closeAll()
        for entry in entries.values {
            guard let prospect = entry.stage.prospect else { continue }
            prospect.timer.map(loop.cancel)
            prospect.caller.end(.duringLookup(CURLE_ABORTED_BY_CALLBACK, "the transfer engine is gone"))
        }
    }

    // MARK: From any thread

    /// Whether the caller runs on the engine's thread.
    package nonisolated var isCurrent: Bool { loop.isCurrent }

    /// Starts a transfer outside any session's pool; see ``TransferPool/start(_:deliver:)``.
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
        perform { $0.enter(id, request, pool, connectionsPerHost, caller) }
        return id
    }

    /// Ends a transfer with code 42, unless it has ended before.
    package nonisolated func cancel(_ id: TransferID) {
        perform { $0.end(id, .duringLookup(CURLE_ABORTED_BY_CALLBACK, "cancelled")) }
    }

    /// Lets parts of a transfer stand still, in addition to those that do already, and whatever it is doing.
    ///
    /// The name lookup and the connection are made all the same, the head of the request is sent, and the head
    /// of the response may come; nothing of the bodies is read or delivered once the engine has got around to
    /// it. libcurl keeps what it had received at once (16 KiB, or what 7 KiB decode to), and with HTTP/2 the 32 MiB
    /// that its window lets the server send; the rest waits in the kernel and with the server. The idle timeout begins
    /// anew with ``resume(_:)``; the others go on. While nothing is received it is not noticed either that the
    /// server has gone.
    package nonisolated func pause(_ id: TransferID, _ what: TransferPause) {
        // Whoever is being told of a body, and has enough, gets no more of it in this turn.
        if what.contains(.receiving), loop.isCurrent { assumeIsolated { $0.hold(id) } }
        perform { $0.setPause(of: id, what) }
    }

    /// Lets everything of a transfer go on that stands still because of ``pause(_:_:)``.
    package nonisolated func resume(_ id: TransferID) {
        perform { $0.setPause(of: id, nil) }
    }

    /// Renews the connections of transfers outside any session's pool; see ``TransferPool/renewConnections()``.
    package nonisolated func renewConnections() {
        renewConnections(of: .common)
    }

    nonisolated func renewConnections(of pool: TransferPool.ID) {
        resolver.renew()
        perform { $0.multis.retire(pool) }
    }

    /// Closes a pool's connections, as soon as no transfer uses them.
    nonisolated func forget(_ pool: TransferPool.ID) {
        perform { $0.multis.forget(pool, hasTransfers: $0.hasTransfers(of: pool)) }
    }

    private nonisolated func perform(_ body: @escaping @Sendable (isolated TransferEngine) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: The life of a transfer

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
            entries[id] = Entry(door: door, stage: .waiting(prospect))
            if mayBegin { begin([id]) }
        } catch {
            caller.end(error)
        }
    }

    /// Begins transfers that have waited, and those that wait for the ones among them that come to nothing.
    private func begin(_ ids: [TransferID]) {
        var ids = ids[...]
        while let id = ids.popFirst() {
            guard let entry = entries[id], case .waiting(let prospect) = entry.stage else { continue }
            prospect.begin(loop)
            do throws(TransferFailure) {
                if prospect.target.needsLookup {
                    lookUp(id, prospect)
                } else {
                    try launch(id, prospect)
                }
            } catch {
                ids += leave(id)
                prospect.caller.end(error)
            }
        }
    }

    private func lookUp(_ id: TransferID, _ prospect: Prospect) {
        prospect.timer = timer(for: id, after: prospect.target.lookupTimeout, "the name lookup")
        entries[id]?.stage = .lookingUp(prospect)
        resolver.resolve(prospect.target.url.host) { [weak self] outcome in
            self?.perform { $0.lookedUp(id, outcome) }
        }
    }

    private func lookedUp(_ id: TransferID, _ outcome: NameResolver.Outcome) {
        guard case .lookingUp(let prospect) = entries[id]?.stage else { return }
        do throws(TransferFailure) {
            try prospect.take(outcome, loop)
            try launch(id, prospect)
        } catch {
            let next = leave(id)
            prospect.caller.end(error)
            begin(next)
        }
    }

    private func launch(_ id: TransferID, _ prospect: Prospect) throws(TransferFailure) {
        guard let entry = entries[id] else { return }
        let (multiID, multi) = try multi(for: id, prospect.target, entry.door.pool)
        defer { forget([], of: multiID) }
        let transfer = try Transfer(
            id: id,
            target: prospect.target,
            caller: prospect.caller,
            paused: prospect.paused,
            multi: multi
        ) { [weak self] change in
            self?.perform { $0.changePause(of: id, change) }
        }
        try multi.add(transfer)
        entries[id]?.stage = .underWay(multiID)
    }

    /// Ends a transfer from outside.
    ///
    /// - Parameter failure: What it ends with if libcurl does not have it yet.
    private func end(_ id: TransferID, _ failure: TransferFailure) {
        guard let entry = entries[id] else { return }
        switch entry.stage {
        case .waiting(let prospect):
            prospect.timer.map(loop.cancel)
            room.giveUp(id, by: entry.door)
            entries[id] = nil
            prospect.caller.end(
                TransferFailure(code: failure.code, phase: .prepare, message: failure.message)
            )
        case .lookingUp(let prospect):
            prospect.timer.map(loop.cancel)
            let next = leave(id)
            prospect.caller.end(failure)
            begin(next)
        case .underWay(let multi):
            multis[multi]?.remove(id)?.finish(CURLE_ABORTED_BY_CALLBACK, message: "cancelled")
            forget([id], of: multi)
        }
    }

    /// Forgets a transfer that had begun. Returns who may begin in its place.
    private func leave(_ id: TransferID) -> [TransferID] {
        guard let entry = entries.removeValue(forKey: id) else { return [] }
        return room.leave(by: entry.door)
    }

    private func timer(for id: TransferID, after timeout: Duration?, _ what: String) -> EventLoop.Timer? {
        guard let timeout else { return nil }
        return loop.schedule(at: .now + timeout) { [weak self] in
            self?.assumeIsolated { $0.end(id, .duringLookup(CURLE_OPERATION_TIMEDOUT, "\(what) timed out")) }
        }
    }

    // MARK: Pauses

    /// - Parameter what: What stands still in addition; `nil` for nothing any more.
    private func setPause(of id: TransferID, _ what: TransferPause?) {
        switch entries[id]?.stage {
        case .waiting(let prospect), .lookingUp(let prospect): prospect.setPause(what)
        case .underWay:
            changePause(of: id) { transfer in what.map(transfer.pause) ?? transfer.resume() }
        case nil: break
        }
    }

    private func hold(_ id: TransferID) {
        guard case .underWay(let multi) = entries[id]?.stage else { return }
        multis[multi]?.hold(id)
    }

    private func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) {
        guard case .underWay(let multi) = entries[id]?.stage else { return }
        advance(multi) { $0.changePause(of: id, change) }
    }

    // MARK: Multi handles

    /// The multi handle whose connections a transfer may use.
    private func multi(
        for id: TransferID,
        _ target: TransferTarget,
        _ pool: TransferPool.ID
    ) throws(TransferFailure) -> (id: MultiTable.ID, handle: CurlMulti) {
        let sharing = multis.sharing(
            pool,
            // Without TLS nothing has to be proved.
            target.url.isSecure ? target.request.trust : .standard,
            boundTransfer: target.request.binding == nil ? nil : id
        )
        defer { sweepLater() }
        return try multis.handle(for: sharing) { newID throws(TransferFailure) in
            try makeMulti(newID, TrustContext(sharing.trust))
        }
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
            if reached.contains(.connected) { begin(room.open(door)) }
            if reached.contains(.multiplexed) { begin(room.widen(door)) }
        }
        forget(turn.ended, of: id)
    }

    /// Forgets transfers that have ended, and closes their multi handle too when these were its last and it is to get
    /// none.
    private func forget(_ ended: [TransferID], of id: MultiTable.ID) {
        let next = ended.flatMap { leave($0) }
        multis.closeIfDone(id)
        begin(next)
    }

    /// How many multi handles there are.
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
    fileprivate static func duringLookup(_ code: CURLcode, _ message: String) -> TransferFailure {
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

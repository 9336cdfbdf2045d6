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
/// Names are looked up by ``NameResolver``, never by libcurl, which would start a thread for each.
package actor TransferEngine {
    /// A transfer that waits for its host's addresses.
    private struct Lookup {
        let target: TransferTarget
        let started: ContinuousClock.Instant
        let deliver: @Sendable (TransferEvent) -> Void
        let timer: EventLoop.Timer
    }

    private typealias PoolID = Int

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

    private let loop: EventLoop
    private let resolver: NameResolver
    private var lookups: [TransferID: Lookup] = [:]
    private var pools: [PoolID: CurlMulti] = [:]
    private var poolOfTransfer: [TransferID: PoolID] = [:]
    /// The pool of transfers that are not tied to a way.
    private var currentPool: PoolID = 0
    private var newestPool: PoolID = 0

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
        self.resolver = resolver
    }

    isolated deinit {
        for pool in pools.values { pool.close() }
        for lookup in lookups.values {
            loop.cancel(lookup.timer)
            lookup.deliver(
                .end(.failure(.duringLookup(CURLE_ABORTED_BY_CALLBACK, "the transfer engine is gone")))
            )
        }
    }

    // MARK: From any thread

    /// Starts a transfer. `deliver` is called on the engine's thread, must not block it, and gets exactly
    /// one end, whatever happens.
    @discardableResult
    package nonisolated func start(
        _ request: TransferRequest,
        deliver: @escaping @Sendable (TransferEvent) -> Void
    ) -> TransferID {
        let id = TransferID()
        perform { $0.begin(id, request, deliver) }
        return id
    }

    /// Ends a transfer with code 42, unless it has ended before.
    package nonisolated func cancel(_ id: TransferID) {
        perform { $0.end(id) }
    }

    /// Makes transfers from now on use new connections and newly looked-up names; those under way keep
    /// theirs. For when the network path has changed.
    package nonisolated func renewConnections() {
        perform { $0.retireCurrentPool() }
    }

    private nonisolated func perform(_ body: @escaping @Sendable (isolated TransferEngine) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: The life of a transfer

    private func begin(
        _ id: TransferID,
        _ request: TransferRequest,
        _ deliver: @escaping @Sendable (TransferEvent) -> Void
    ) {
        do throws(TransferFailure) {
            let target = try TransferTarget(request)
            if target.needsLookup {
                lookUp(id, target, deliver)
            } else {
                try launch(id, target, deliver)
            }
        } catch {
            deliver(.end(.failure(error)))
        }
    }

    private func lookUp(
        _ id: TransferID,
        _ target: TransferTarget,
        _ deliver: @escaping @Sendable (TransferEvent) -> Void
    ) {
        let started = ContinuousClock.now
        let timer = loop.schedule(at: started + target.lookupTimeout) { [weak self] in
            self?.assumeIsolated {
                $0.endLookup(id, .duringLookup(CURLE_OPERATION_TIMEDOUT, "the name lookup timed out"))
            }
        }
        lookups[id] = Lookup(target: target, started: started, deliver: deliver, timer: timer)
        resolver.resolve(target.url.host) { [weak self] outcome in
            self?.perform { $0.lookedUp(id, outcome) }
        }
    }

    private func lookedUp(_ id: TransferID, _ outcome: NameResolver.Outcome) {
        guard case .success(let addresses) = outcome else {
            guard case .failure(let failure) = outcome else { return }
            return endLookup(id, .noAddress(failure))
        }
        guard let lookup = takeLookup(id) else { return }
        var target = lookup.target
        target.spend(lookup.started.duration(to: .now))
        do throws(TransferFailure) {
            try target.setAddresses(addresses)
            try launch(id, target, lookup.deliver)
        } catch {
            lookup.deliver(.end(.failure(error)))
        }
    }

    private func takeLookup(_ id: TransferID) -> Lookup? {
        guard let lookup = lookups.removeValue(forKey: id) else { return nil }
        loop.cancel(lookup.timer)
        return lookup
    }

    private func endLookup(_ id: TransferID, _ failure: TransferFailure) {
        takeLookup(id)?.deliver(.end(.failure(failure)))
    }

    private func launch(
        _ id: TransferID,
        _ target: TransferTarget,
        _ deliver: @escaping @Sendable (TransferEvent) -> Void
    ) throws(TransferFailure) {
        let transfer = try Transfer(id: id, target: target, deliver: deliver)
        // No other transfer may share a connection that was made for one way, nor the address it went to.
        let poolID = target.request.binding == nil ? currentPool : newPool()
        defer { forget([], of: poolID) }
        try pool(poolID).add(transfer)
        poolOfTransfer[id] = poolID
    }

    private func end(_ id: TransferID) {
        endLookup(id, .duringLookup(CURLE_ABORTED_BY_CALLBACK, "cancelled"))
        guard let poolID = poolOfTransfer[id], let pool = pools[poolID] else { return }
        pool.remove(id)?.finish(CURLE_ABORTED_BY_CALLBACK, message: "cancelled")
        forget([id], of: poolID)
    }

    // MARK: Pools

    private func newPool() -> PoolID {
        newestPool += 1
        return newestPool
    }

    private func pool(_ id: PoolID) throws(TransferFailure) -> CurlMulti {
        if let pool = pools[id] { return pool }
        let pool = CurlMulti(
            loop: loop,
            onReadiness: { [weak self] descriptor, readiness in
                self?.assumeIsolated { engine in
                    engine.advance(id) { $0.descriptorIsReady(descriptor, readiness) }
                }
            },
            onTimeout: { [weak self] in
                self?.assumeIsolated { engine in engine.advance(id) { $0.timeoutHasPassed() } }
            }
        )
        guard let pool else { throw .refused(CURLE_OUT_OF_MEMORY, "out of memory or descriptors") }
        pools[id] = pool
        return pool
    }

    private func advance(_ id: PoolID, _ step: (CurlMulti) -> [TransferID]) {
        guard let pool = pools[id] else { return }
        forget(step(pool), of: id)
    }

    private func retireCurrentPool() {
        let retired = currentPool
        currentPool = newPool()
        forget([], of: retired)
    }

    /// Closes the pool too when it is retired and these were its last transfers.
    private func forget(_ ended: [TransferID], of id: PoolID) {
        for transfer in ended { poolOfTransfer[transfer] = nil }
        guard id != currentPool, let pool = pools[id], pool.isIdle else { return }
        pools[id] = nil
        pool.close()
    }
}

extension TransferFailure {
    fileprivate static func duringLookup(_ code: CURLcode, _ message: String) -> TransferFailure {
        TransferFailure(code: Int32(code.rawValue), phase: .resolve, message: message)
    }

    fileprivate static func noAddress(_ failure: NameResolver.Failure) -> TransferFailure {
        TransferFailure(
            code: Int32(CURLE_COULDNT_RESOLVE_HOST.rawValue),
            osErrno: failure.errno,
            resolverCode: failure.code,
            phase: .resolve,
            message: "\(failure)"
        )
    }
}

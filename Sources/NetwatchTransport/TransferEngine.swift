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
    fileprivate struct Lookup {
        let target: TransferTarget
        var caller: TransferCaller
        let timer: EventLoop.Timer
        var paused: TransferPause = []
    }

    private typealias PoolID = Int

    /// The codings that libcurl can undo, as `Accept-Encoding` names them.
    package static let decodableEncodings: [String] = {
        let features = curl_version_info(CURLVERSION_FIRST).pointee.features
        let known = [
            ("br", CURL_VERSION_BROTLI), ("gzip", CURL_VERSION_LIBZ), ("deflate", CURL_VERSION_LIBZ),
            ("zstd", CURL_VERSION_ZSTD),
        ]
        return known.filter { features & $0.1 != 0 }.map(\.0)
    }()

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
            lookup.caller.end(.duringLookup(CURLE_ABORTED_BY_CALLBACK, "the transfer engine is gone"))
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
        let caller = TransferCaller(of: request, startedAt: .now, deliver: deliver)
        perform { $0.begin(id, request, caller) }
        return id
    }

    /// Ends a transfer with code 42, unless it has ended before.
    package nonisolated func cancel(_ id: TransferID) {
        perform { $0.end(id) }
    }

    /// Lets parts of a transfer stand still, in addition to those that do already, and whatever it is doing.
    ///
    /// The name lookup and the connection are made all the same, the head of the request is sent, and the head
    /// of the response may come; nothing of the bodies is read or delivered once the engine has got around to
    /// it. libcurl keeps up to 16 KiB that it had received, before decoding, and with HTTP/2 the 32 MiB that its
    /// window lets the server send; the rest waits in the kernel and with the server. The idle timeout begins anew with ``resume(_:)``; the others go on. While
    /// nothing is received it is not noticed either that the server has gone.
    package nonisolated func pause(_ id: TransferID, _ what: TransferPause) {
        perform { $0.setPause(of: id, what) }
    }

    /// Lets everything of a transfer go on that stands still because of ``pause(_:_:)``.
    package nonisolated func resume(_ id: TransferID) {
        perform { $0.setPause(of: id, nil) }
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
        _ caller: TransferCaller
    ) {
        do throws(TransferFailure) {
            let target = try TransferTarget(request)
            if target.needsLookup {
                lookUp(id, target, caller)
            } else {
                try launch(id, target, caller)
            }
        } catch {
            caller.end(error)
        }
    }

    private func lookUp(_ id: TransferID, _ target: TransferTarget, _ caller: TransferCaller) {
        let timer = loop.schedule(at: caller.startedAt + target.lookupTimeout) { [weak self] in
            self?.assumeIsolated {
                $0.endLookup(id, .duringLookup(CURLE_OPERATION_TIMEDOUT, "the name lookup timed out"))
            }
        }
        lookups[id] = Lookup(target: target, caller: caller, timer: timer)
        resolver.resolve(target.url.host) { [weak self] outcome in
            self?.perform { $0.lookedUp(id, outcome) }
        }
    }

    private func lookedUp(_ id: TransferID, _ outcome: NameResolver.Outcome) {
        guard var lookup = takeLookup(id) else { return }
        lookup.caller.lookupHasEnded()
        do throws(TransferFailure) {
            let target = try lookup.target(with: outcome)
            try launch(id, target, lookup.caller, paused: lookup.paused)
        } catch {
            lookup.caller.end(error)
        }
    }

    private func takeLookup(_ id: TransferID) -> Lookup? {
        guard let lookup = lookups.removeValue(forKey: id) else { return nil }
        loop.cancel(lookup.timer)
        return lookup
    }

    private func endLookup(_ id: TransferID, _ failure: TransferFailure) {
        takeLookup(id)?.caller.end(failure)
    }

    private func launch(
        _ id: TransferID,
        _ target: TransferTarget,
        _ caller: TransferCaller,
        paused: TransferPause = []
    ) throws(TransferFailure) {
        let transfer = try Transfer(id: id, target: target, caller: caller, paused: paused) { [weak self] in
            self?.perform { $0.sourceIsReady(of: id) }
        }
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

    // MARK: Pauses

    /// - Parameter what: What stands still in addition; `nil` for nothing any more.
    private func setPause(of id: TransferID, _ what: TransferPause?) {
        if lookups[id] != nil {
            lookups[id]!.paused = what.map(lookups[id]!.paused.union) ?? []
        } else {
            changePause(of: id) { transfer in what.map(transfer.pause) ?? transfer.resume() }
        }
    }

    private func sourceIsReady(of id: TransferID) {
        changePause(of: id) { $0.sourceIsReady() }
    }

    private func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) {
        guard let pool = poolOfTransfer[id] else { return }
        advance(pool) { $0.changePause(of: id, change) }
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

extension TransferEngine.Lookup {
    /// The target with what the lookup came to.
    fileprivate func target(with outcome: NameResolver.Outcome) throws(TransferFailure) -> TransferTarget {
        var target = target
        target.spend(caller.elapsed)
        switch outcome {
        case .success(let addresses): try target.setAddresses(addresses)
        case .failure(let failure): throw .noAddress(failure)
        }
        return target
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

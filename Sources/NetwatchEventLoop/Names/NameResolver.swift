internal import Glibc
internal import Synchronization

/// Resolves names with `getaddrinfo(3)` on its own threads and caches the answers.
///
/// A lookup may block for tens of seconds while name servers do not respond, so it must never run on an event loop or
/// on the cooperative pool. There is one thread per lookup, up to a limit, and idle threads exit. Concurrent lookups
/// of the same name share one call, until ``renew()``. ``ResolverCore`` makes the decisions; this class provides the
/// threads and the clock.
///
/// A resolver for a network namespace queries the name servers from there. Their addresses come from the files of the
/// process's mount namespace. Lookups that the C library delegates to a local service (`nscd`, `nss-resolve`) run in
/// the namespace of that service.
package final class NameResolver: Sendable {
    package typealias Completion = @Sendable (Outcome) -> Void
    typealias Instant = ContinuousClock.Instant

    /// The threads to start.
    fileprivate struct Growth {
        let threads: Int
        let needsTimer: Bool
    }

    fileprivate struct State {
        var core: ResolverCore
        var files: FileFingerprints
        var completions: [ResolverCore.CallerID: Completion] = [:]
        /// Whether a thread is running that delivers stale answers on time.
        var hasTimerThread = false
    }

    private let networkNamespace: String?
    private let files: [String]
    private let lookUp: @Sendable (String) -> Outcome
    private let state: Mutex<State>

    /// The shared resolver of the process.
    package static let shared = NameResolver()

    /// - Parameters:
    ///   - maximumThreads: The maximum number of concurrent lookups. Default 128.
    ///   - networkNamespace: The path of the network namespace in which names are looked up. Default `nil`: that of
    ///     the process. If it cannot be entered, every lookup fails with `EAI_SYSTEM`.
    ///   - files: The files whose change empties the cache.
    ///   - faults: Faults to inject, for tests.
    ///   - lookUp: The blocking lookup; replaced by tests.
    package init(
        maximumThreads: Int = ResolverTimes.maximumThreads,
        networkNamespace: String? = nil,
        files: [String] = FileFingerprints.resolverPaths,
        faults: ResolverFaults = ResolverFaults(),
        lookUp: @escaping @Sendable (String) -> Outcome = NameResolver.getAddresses
    ) {
        self.networkNamespace = networkNamespace
        self.files = files
        self.lookUp = lookUp
        let core = ResolverCore(threads: maximumThreads, faults: faults)
        state = Mutex(State(core: core, files: FileFingerprints(of: files)))
    }

    /// Looks up a name.
    ///
    /// The result contains 1 to 64 addresses without duplicates, in the order of `getaddrinfo(3)` (RFC 6724).
    ///
    /// - Parameters:
    ///   - name: The name. A literal is returned as it is.
    ///   - urgency: `needed` accepts a cached answer, up to an hour old while name servers do not respond (RFC 8767).
    ///     `refresh` asks the name servers, with lower priority.
    ///   - completion: Called once, unless the lookup is abandoned first. Called immediately on the caller's thread
    ///     if the answer is known, otherwise on a resolver thread. It must not block.
    /// - Returns: The lookup, for ``abandon(_:)``.
    @discardableResult
    package func resolve(
        _ name: String,
        urgency: Urgency = .needed,
        completion: @escaping Completion
    ) -> Lookup {
        if let addresses = Self.localAddresses(of: name) {
            completion(.success(addresses))
            return Lookup(caller: 0)
        }
        // In a child of fork(2), the lock and the pending lookups belong to the parent's threads.
        guard !ForkedChild.isCurrent else {
            completion(.failure(Failure(code: EAI_SYSTEM, errno: SystemError.forked.errno)))
            return Lookup(caller: 0)
        }
        let files = FileFingerprints(of: files)
        let (caller, outcome, growth) = state.withLock { state in
            state.renew(ifChanged: files)
            let (caller, outcome) = state.core.resolve(name.lowercased(), urgency, now: .now)
            if outcome == nil { state.completions[caller] = completion }
            return (caller, outcome, state.grow())
        }
        if let outcome { completion(outcome) }
        start(growth)
        return Lookup(caller: caller)
    }

    /// Abandons a lookup. The completion is not called after this method returns, unless the call has already begun.
    ///
    /// - Returns: Whether no thread had started the lookup. If so, only a lack of threads on this machine delayed it.
    package func abandon(_ lookup: Lookup) -> Bool {
        // The completion is released outside the lock, because an object that it retains may call this resolver.
        let (_, hadNotBegun) = state.withLock { state in
            (state.completions.removeValue(forKey: lookup.caller), state.core.abandon(lookup.caller))
        }
        return hadNotBegun
    }

    /// Returns when a thread started a lookup; `nil` while it waits for a thread and after it has ended.
    package func start(of lookup: Lookup) -> ContinuousClock.Instant? {
        state.withLock { $0.core.start(of: lookup.caller) }
    }

    /// Removes all answers and prevents later lookups from sharing those in progress, because the network has
    /// changed. Callers that wait for a lookup in progress get the answer of a new one.
    package func renew() {
        state.withLock { $0.core.renew() }
        grow()
    }

    /// Records that none of a name's addresses could be connected to, so that the next lookup asks the name servers.
    package func markUnreachable(_ name: String) {
        state.withLock { $0.core.cache.markUnreachable(name.lowercased()) }
    }

    /// Returns the resolver's current state.
    package func snapshot() -> ResolverSnapshot {
        // Sort outside the lock, so that other callers do not wait.
        let core = state.withLock { $0.core }
        return ResolverSnapshot(core, now: .now)
    }

    // MARK: Threads

    private func grow() {
        start(state.withLock { $0.grow() })
    }

    /// Starts the required worker threads, and the thread that delivers stale answers.
    private func start(_ growth: Growth) {
        for _ in 0..<growth.threads { startThread() }
        if growth.needsTimer { startTimer() }
    }

    private func startThread() {
        do {
            try startDetachedThread(named: "nw-resolver", stackSize: ResolverTimes.stackSize) { self.run() }
        } catch {
            threadFailed(errno: error.errno)
        }
    }

    private func run() {
        do throws(SystemError) {
            work(in: try networkNamespace.map { path throws(SystemError) in try SocketNamespace(path) })
        } catch {
            threadFailed(errno: error.errno)
        }
    }

    /// Runs lookups until none may be started. Completions are called outside the namespace.
    private func work(in namespace: SocketNamespace?) {
        while let question = state.withLock({ $0.core.takeNext(now: .now) }) {
            let outcome = lookUp(question.name, in: namespace)
            deliver { $0.end(question, outcome, now: .now) }
            grow()
        }
    }

    private func lookUp(_ name: String, in namespace: SocketNamespace?) -> Outcome {
        guard let namespace else { return lookUp(name) }
        do throws(SystemError) {
            return try namespace.run { () throws(SystemError) in lookUp(name) }
        } catch {
            return .failure(Failure(code: EAI_SYSTEM, errno: error.errno))
        }
    }

    /// Handles a failure to start a thread. Starts no other thread, because that would fail again and again.
    private func threadFailed(errno: CInt) {
        deliver { $0.threadFailed(Failure(code: EAI_SYSTEM, errno: errno), now: .now) }
    }

    // MARK: Answers

    private func deliver(_ decide: (inout ResolverCore) -> [ResolverCore.Delivery]) {
        let deliveries = state.withLock { state in
            decide(&state.core).map { (state.completions.removeValue(forKey: $0.caller), $0.outcome) }
        }
        for (completion, outcome) in deliveries { completion?(outcome) }
    }

    /// Starts the thread that delivers stale answers. If that fails, callers wait for the lookup itself.
    private func startTimer() {
        do {
            try startDetachedThread(named: "nw-resolver", stackSize: ResolverTimes.stackSize) {
                self.deliverStaleAnswers()
            }
        } catch {
            state.withLock { $0.hasTimerThread = false }
        }
    }

    /// Delivers stale answers while any may become due. The delay is the same for all, so nothing becomes due while
    /// this thread sleeps until the next one.
    private func deliverStaleAnswers() {
        while let due = state.withLock({ $0.nextDue() }) {
            sleep(until: due)
            deliver { $0.takeDue(now: .now) }
            grow()
        }
    }
}

extension NameResolver.State {
    /// Invalidates the cache if the files changed. The C library rereads changed files by itself.
    fileprivate mutating func renew(ifChanged files: FileFingerprints) {
        guard files != self.files else { return }
        self.files = files
        core.renew()
    }

    fileprivate mutating func grow() -> NameResolver.Growth {
        .init(threads: core.grow(now: .now), needsTimer: mustStartTimer())
    }

    private mutating func mustStartTimer() -> Bool {
        guard !hasTimerThread, core.nextDue != nil else { return false }
        hasTimerThread = true
        return true
    }

    fileprivate mutating func nextDue() -> ContinuousClock.Instant? {
        if core.nextDue == nil { hasTimerThread = false }
        return core.nextDue
    }
}

/// Blocks the calling thread until a moment, or until a signal arrives.
private func sleep(until moment: ContinuousClock.Instant) {
    let (seconds, attoseconds) = max(.zero, moment - .now).components
    var duration = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    nanosleep(&duration, nil)
}

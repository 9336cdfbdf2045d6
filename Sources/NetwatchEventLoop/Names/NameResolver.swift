internal import Glibc

/// A resolver that looks up names with `getaddrinfo(3)` on its own threads, and caches the answers.
///
/// A lookup may block for tens of seconds while name servers are silent. It must therefore never run on an event loop
/// or in the cooperative pool. Each lookup has a thread, up to a limit, and idle threads exit. Concurrent lookups of
/// the same name share one call of `getaddrinfo(3)`; after ``renew()`` the next lookup makes a new call.
///
/// ``ResolverCore`` makes the decisions. This class provides the threads and the clock.
///
/// A resolver for a network namespace sends its queries in that namespace. Other parts of a lookup do not depend on it:
///
/// - The addresses of the name servers come from the files in the process's mount namespace.
/// - A local service to which the C library delegates lookups (`nscd`, `nss-resolve`) sends its queries in its own
///   namespace.
package final class NameResolver: Sendable {
    package typealias Completion = @Sendable (Outcome) -> Void
    typealias Instant = BootInstant

    /// The threads that must be started.
    fileprivate struct Growth {
        let threads: Int
        let needsTimer: Bool
    }

    fileprivate struct State {
        var core: ResolverCore
        var files: FileFingerprints
        var completions: [ResolverCore.CallerID: Completion] = [:]
        /// Whether the thread that delivers stale answers is running.
        var hasTimerThread = false
    }

    private let networkNamespace: String?
    private let files: [String]
    private let lookUp: @Sendable (String) -> Outcome
    private let state: Lock<State>

    /// The shared resolver of the process.
    package static let shared = NameResolver()

    /// Creates a resolver.
    ///
    /// - Parameters:
    ///   - maximumThreads: The maximum number of concurrent lookups. Default 128.
    ///   - networkNamespace: The path of the network namespace in which names are looked up. Default `nil`: the
    ///     namespace of the process. If a thread cannot enter the namespace, the lookup fails with `EAI_SYSTEM`.
    ///   - files: The files whose change empties the cache. Default: the files that configure name resolution.
    ///   - faults: The faults to inject, for tests.
    ///   - lookUp: The blocking lookup. Default: `getaddrinfo(3)`. Tests replace it.
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
        state = Lock(State(core: core, files: FileFingerprints(of: files)))
    }

    /// Looks up a name.
    ///
    /// A successful result has 1 to 64 addresses without duplicates, in the order of `getaddrinfo(3)` (RFC 6724).
    ///
    /// - Parameters:
    ///   - name: The name. An IP address is returned unchanged.
    ///   - urgency: With `needed`, the answer may come from the cache; while name servers are silent, it may be up to
    ///     an hour old (RFC 8767). `refresh` always queries the name servers, with lower priority. Default `needed`.
    ///   - completion: Receives the result. Called once, or never if the lookup is abandoned first. It is called
    ///     immediately on the caller's thread if the answer is known, and later on a resolver thread if not. It must
    ///     not block.
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
        // In a child of fork(2), the lock may be held by a thread of the parent, and no thread works on the pending
        // lookups.
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

    /// Returns the addresses of a name that are in the cache, up to an hour old; empty if there are none. Never queries
    /// a name server.
    package func knownAddresses(of name: String) -> [IPAddress] {
        guard !ForkedChild.isCurrent else { return [] }
        return state.withLock { $0.core.cache.staleAddresses(of: name.lowercased(), now: .now) } ?? []
    }

    /// Abandons a lookup. After this method returns, the completion is not called, but a call that has already begun
    /// may continue.
    ///
    /// - Returns: `true` if no thread had started the lookup. The name servers are then not the cause of a delay; this
    ///   machine had no free thread.
    package func abandon(_ lookup: Lookup) -> Bool {
        // The completion must be released outside the lock, because an object that it retains may call this resolver.
        let (_, hadNotBegun) = state.withLock { state in
            (state.completions.removeValue(forKey: lookup.caller), state.core.abandon(lookup.caller))
        }
        return hadNotBegun
    }

    /// Returns the time at which a thread started a lookup; `nil` while the lookup waits for a thread, and after its
    /// end.
    package func start(of lookup: Lookup) -> BootInstant? {
        state.withLock { $0.core.start(of: lookup.caller) }
    }

    /// Invalidates all cached answers and all lookups in progress. Must be called when the network has changed.
    ///
    /// Later callers do not share a lookup in progress. Callers that already wait for one get the answer of a new
    /// lookup instead, if their urgency is `needed`.
    package func renew() {
        state.withLock { $0.core.renew() }
        grow()
    }

    /// Records that all connection attempts to the addresses of a name failed. The next caller then waits for a new
    /// lookup.
    package func markUnreachable(_ name: String) {
        state.withLock { $0.core.cache.markUnreachable(name.lowercased()) }
    }

    /// Returns the resolver's current state.
    package func snapshot() -> ResolverSnapshot {
        // The names are sorted outside the lock, so that other callers do not wait.
        let core = state.withLock { $0.core }
        return ResolverSnapshot(core, now: .now)
    }

    // MARK: Threads

    private func grow() {
        start(state.withLock { $0.grow() })
    }

    /// Starts the lookup threads that are required, and the thread that delivers stale answers.
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

    /// Runs lookups until there is none that may start. Completions are called outside the namespace.
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

    /// Handles a failure to start a thread. It does not try another thread, because that would fail again and again.
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

    /// Starts the thread that delivers stale answers. If it cannot be started, callers wait for the lookup itself.
    private func startTimer() {
        do {
            try startDetachedThread(named: "nw-resolver", stackSize: ResolverTimes.stackSize) {
                self.deliverStaleAnswers()
            }
        } catch {
            state.withLock { $0.hasTimerThread = false }
        }
    }

    /// Delivers stale answers until no caller can get one. All callers have the same delay. So while this thread waits
    /// for the first caller's deadline, no other caller becomes due.
    private func deliverStaleAnswers() {
        while let due = state.withLock({ $0.nextDue() }) {
            sleep(until: due)
            deliver { $0.takeDue(now: .now) }
            grow()
        }
    }
}

extension NameResolver.State {
    /// Invalidates the cache if the files have changed. The C library itself rereads changed files.
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

    fileprivate mutating func nextDue() -> BootInstant? {
        if core.nextDue == nil { hasTimerThread = false }
        return core.nextDue
    }
}

/// Blocks the calling thread until a point in time. Returns earlier if a signal arrives.
private func sleep(until moment: BootInstant) {
    let (seconds, attoseconds) = max(.zero, moment - .now).components
    var duration = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    nanosleep(&duration, nil)
}

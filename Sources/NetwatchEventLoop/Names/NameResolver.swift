internal import Glibc
internal import Synchronization

/// Resolves names with `getaddrinfo(3)` on threads of its own, and keeps the answers for a while.
///
/// A lookup may block for tens of seconds when name servers are silent, so it must never run on an event
/// loop or on the cooperative pool. There are as many threads as lookups, up to a limit; a thread without work
/// ends. Lookups of the same name join, until ``renew()``. ``ResolverCore`` decides; this class has the
/// threads and the clock.
///
/// A resolver of a network namespace asks its name servers from there. Which ones those are it reads, like
/// everybody, from the files of the process's mount namespace; and what the C library hands to a service on
/// this machine (`nscd`, `nss-resolve`) is looked up where that service is.
package final class NameResolver: Sendable {
    package typealias Completion = @Sendable (Outcome) -> Void
    typealias Instant = ContinuousClock.Instant

    /// What there is to start.
    fileprivate struct Growth {
        let threads: Int
        let needsTimer: Bool
    }

    fileprivate struct State {
        var core: ResolverCore
        var files: FileFingerprints
        var completions: [ResolverCore.Asker: Completion] = [:]
        /// Whether a thread delivers stale answers in time.
        var isTimed = false
    }

    private let networkNamespace: String?
    private let files: [String]
    private let lookUp: @Sendable (String) -> Outcome
    private let state: Mutex<State>

    /// The resolver that the whole process shares.
    package static let shared = NameResolver()

    /// - Parameters:
    ///   - maximumThreads: How many lookups run at once. Default 128.
    ///   - networkNamespace: A path to the network namespace that names are looked up in. `nil`, the default,
    ///     is the process's own. One that cannot be entered fails every lookup, with `EAI_SYSTEM`.
    ///   - files: The files whose change empties the cache.
    ///   - faults: Ways to break it, for tests.
    ///   - lookUp: The blocking lookup; tests put their own here.
    package init(
        maximumThreads: Int = ResolverTimes.mostThreads,
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

    /// Looks a name up.
    ///
    /// The addresses come in the order of `getaddrinfo(3)`, which is RFC 6724's, without duplicates; there are
    /// 1 to 64 of them.
    ///
    /// - Parameters:
    ///   - name: The name; a literal is its own answer.
    ///   - urgency: `needed` takes a cached answer, up to an hour old while name servers are silent (RFC 8767).
    ///     `refresh` asks the name servers, after all who need an answer.
    ///   - completion: Called once, unless the lookup is abandoned before: at once on the caller's thread when
    ///     the answer is known, otherwise on a resolver thread. It must not block.
    /// - Returns: What ``abandon(_:)`` takes.
    @discardableResult
    package func resolve(
        _ name: String,
        urgency: Urgency = .needed,
        completion: @escaping Completion
    ) -> Lookup {
        if let addresses = Self.localAddresses(of: name) {
            completion(.success(addresses))
            return Lookup(asker: 0)
        }
        // The lock, and lookups that others could join, are those of the parent's threads.
        guard !ForkedChild.isCurrent else {
            completion(.failure(Failure(code: EAI_SYSTEM, errno: SystemError.forked.errno)))
            return Lookup(asker: 0)
        }
        let files = FileFingerprints(of: files)
        let (asker, outcome, growth) = state.withLock { state in
            state.renew(ifChanged: files)
            let (asker, outcome) = state.core.ask(name.lowercased(), urgency, now: .now)
            if outcome == nil { state.completions[asker] = completion }
            return (asker, outcome, state.grow())
        }
        if let outcome { completion(outcome) }
        start(growth)
        return Lookup(asker: asker)
    }

    /// Gives up: the completion is not called any more, unless it has been called already or is being called.
    ///
    /// - Returns: Whether no thread had begun with the lookup, so that only this machine was short of threads.
    package func abandon(_ lookup: Lookup) -> Bool {
        // The completion is released outside the lock: what it retains may come back here.
        let (_, hadNotBegun) = state.withLock { state in
            (state.completions.removeValue(forKey: lookup.asker), state.core.abandon(lookup.asker))
        }
        return hadNotBegun
    }

    /// When a thread began with a lookup; `nil` while it waits for one, and when it has ended.
    package func start(of lookup: Lookup) -> ContinuousClock.Instant? {
        state.withLock { $0.core.start(of: lookup.asker) }
    }

    /// Forgets all answers and makes later lookups join none that is under way: the network has changed, and
    /// with it perhaps the answers. Callers that wait for a lookup under way get the answer of a new one.
    package func renew() {
        state.withLock { $0.core.renew() }
        grow()
    }

    /// None of a name's addresses could be connected to: the next lookup asks the name servers.
    package func doubt(_ name: String) {
        state.withLock { $0.core.cache.doubt(name.lowercased()) }
    }

    /// What the resolver knows now.
    package func snapshot() -> ResolverSnapshot {
        // Sorted outside, because others wait for the lock.
        let core = state.withLock { $0.core }
        return ResolverSnapshot(core, now: .now)
    }

    // MARK: Threads

    private func grow() {
        start(state.withLock { $0.grow() })
    }

    /// Starts as many threads as there is work for, and the one that delivers stale answers.
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

    /// Looks names up until none may be. Completions are called outside the namespace.
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

    /// Starts no other thread: that would fail as well, and again and again.
    private func threadFailed(errno: CInt) {
        deliver { $0.threadFailed(Failure(code: EAI_SYSTEM, errno: errno), now: .now) }
    }

    // MARK: Answers

    private func deliver(_ decide: (inout ResolverCore) -> [ResolverCore.Delivery]) {
        let deliveries = state.withLock { state in
            decide(&state.core).map { (state.completions.removeValue(forKey: $0.asker), $0.outcome) }
        }
        for (completion, outcome) in deliveries { completion?(outcome) }
    }

    /// Without this thread callers wait for the lookup itself, which is the lesser evil.
    private func startTimer() {
        do {
            try startDetachedThread(named: "nw-resolver", stackSize: ResolverTimes.stackSize) {
                self.keepTime()
            }
        } catch {
            state.withLock { $0.isTimed = false }
        }
    }

    /// Delivers stale answers while some may become due. All wait equally long, so nothing becomes due while
    /// this thread sleeps until the next one.
    private func keepTime() {
        while let due = state.withLock({ $0.nextDue() }) {
            sleep(until: due)
            deliver { $0.takeDue(now: .now) }
            grow()
        }
    }
}

extension NameResolver.State {
    /// The C library reads changed files again by itself.
    fileprivate mutating func renew(ifChanged files: FileFingerprints) {
        guard files != self.files else { return }
        self.files = files
        core.renew()
    }

    fileprivate mutating func grow() -> NameResolver.Growth {
        .init(threads: core.grow(now: .now), needsTimer: mustStartTimer())
    }

    private mutating func mustStartTimer() -> Bool {
        guard !isTimed, core.nextDue != nil else { return false }
        isTimed = true
        return true
    }

    fileprivate mutating func nextDue() -> ContinuousClock.Instant? {
        if core.nextDue == nil { isTimed = false }
        return core.nextDue
    }
}

/// Blocks the calling thread, or until a signal comes.
private func sleep(until moment: ContinuousClock.Instant) {
    let (seconds, attoseconds) = max(.zero, moment - .now).components
    var duration = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    nanosleep(&duration, nil)
}

internal import Glibc

/// A cache of recent lookup results. A value without I/O.
///
/// The number of names is limited. The least recently used names are evicted first.
struct AnswerCache: Sendable {
    typealias Instant = BootInstant

    /// The results for one name.
    struct Entry: Sendable {
        /// The addresses of the last successful lookup; empty after an authoritative failure.
        var addresses: [IPAddress] = []
        /// The time at which a lookup returned these addresses.
        var answered: Instant?
        /// The error of the last lookup; `nil` if it succeeded.
        var failure: NameResolver.Failure?
        /// The time at which the last lookup ended.
        var ended: Instant
        /// Whether the last lookup took longer than ``ResolverTimes/slowLookup``.
        var isSlow = false
        /// Whether a connection to these addresses was tried, and all attempts failed.
        fileprivate var isUnreachable = false
        fileprivate var lastUse: UInt64 = 0
    }

    /// The cache's answer for a name.
    enum Answer: Equatable {
        case fresh(NameResolver.Outcome)
        /// An expired answer that may still be used. `isFailing` is `true` if the last lookup failed to refresh it.
        /// `recheckIsDue` is `true` if the last lookup was at least ``ResolverTimes/recheck`` ago.
        case stale([IPAddress], isFailing: Bool, recheckIsDue: Bool)
        case none
    }

    private(set) var entries: [String: Entry] = [:]
    private let capacity: Int
    private var uses: UInt64 = 0

    init(capacity: Int = ResolverTimes.maximumNames) {
        self.capacity = max(1, capacity)
    }

    func answer(for name: String, now: Instant) -> Answer {
        guard let entry = entries[name] else { return .none }
        if let outcome = entry.freshOutcome(now) { return .fresh(outcome) }
        guard let addresses = entry.staleAddresses(now) else { return .none }
        return .stale(
            addresses,
            isFailing: entry.failure != nil,
            recheckIsDue: now - entry.ended >= ResolverTimes.recheck
        )
    }

    /// Returns the addresses that may be used while a lookup fails or takes too long; `nil` if there are none.
    func staleAddresses(of name: String, now: Instant) -> [IPAddress]? {
        entries[name]?.staleAddresses(now)
    }

    /// Returns whether the last lookup of a name was slow; `nil` if the cache has no entry for the name.
    func isSlow(_ name: String) -> Bool? {
        entries[name]?.isSlow
    }

    /// Marks a name as recently used.
    mutating func touch(_ name: String) {
        uses += 1
        entries[name]?.lastUse = uses
    }

    /// Stores the result of a lookup. A failure because of a local shortage is ignored, because it says nothing about
    /// the name.
    mutating func store(_ outcome: NameResolver.Outcome, for name: String, isSlow: Bool, now: Instant) {
        var entry = entries[name] ?? Entry(ended: now)
        switch outcome {
        case .success(let addresses):
            (entry.addresses, entry.answered, entry.failure) = (addresses, now, nil)
        case .failure(let failure) where failure.isOwnShortage:
            return
        case .failure(let failure):
            if failure.isAuthoritative { (entry.addresses, entry.answered) = ([], nil) }
            entry.failure = failure
        }
        (entry.ended, entry.isSlow, entry.isUnreachable) = (now, isSlow, false)
        entries[name] = entry
        touch(name)
        if entries.count > capacity { evict() }
    }

    /// Records that all connection attempts to the addresses of a name failed. The name may have other addresses now,
    /// so the next caller waits for a new lookup first.
    mutating func markUnreachable(_ name: String) {
        entries[name]?.isUnreachable = true
    }

    mutating func removeAll() {
        entries = [:]
    }

    /// Evicts an eighth of the capacity at once, which spreads the cost of sorting over many insertions.
    private mutating func evict() {
        let excess = entries.count - capacity + capacity / 8
        let oldestKept = entries.values.map(\.lastUse).sorted()[excess]
        entries = entries.filter { $0.value.lastUse >= oldestKept }
    }
}

extension AnswerCache.Entry {
    fileprivate func freshOutcome(_ now: AnswerCache.Instant) -> NameResolver.Outcome? {
        if let failure {
            // A stale answer is more useful than a failure that may be temporary.
            guard staleAddresses(now) == nil, now - ended < failure.cachedFor else { return nil }
            return .failure(failure)
        }
        guard !isUnreachable, let answered, now - answered < ResolverTimes.freshness else { return nil }
        return .success(addresses)
    }

    fileprivate func staleAddresses(_ now: AnswerCache.Instant) -> [IPAddress]? {
        guard let answered, now - answered < ResolverTimes.staleLimit else { return nil }
        return addresses
    }
}

extension NameResolver.Failure {
    /// The time for which this failure is returned without another lookup.
    fileprivate var cachedFor: Duration {
        code == EAI_AGAIN ? ResolverTimes.temporaryFailureAge : ResolverTimes.failureAge
    }
}

/// The state of a resolver at one moment.
package struct ResolverSnapshot: Hashable, Sendable {
    /// A name that was looked up or is being looked up.
    package struct Name: Hashable, Sendable {
        /// The kind of answer that a caller would get from the cache at this moment.
        package enum State: String, Hashable, Sendable {
            /// An answer younger than ``ResolverTimes/freshness``.
            case fresh
            /// An older answer. It is refreshed when a caller needs it, and is used if the refresh fails or takes too
            /// long.
            case stale
            case failed
            /// No lookup of the name has ended yet.
            case resolving
        }

        package let name: String
        package let state: State
        package let addresses: [IPAddress]
        /// The age of the addresses. If there are none, the time since the last failure; `nil` if no lookup has ended.
        package let age: Duration?
        /// The error of the last lookup; `nil` if it succeeded.
        package let failure: NameResolver.Failure?
        /// Whether the last lookup, or the one in progress, took longer than ``ResolverTimes/slowLookup``.
        package let isSlow: Bool
    }

    /// The names in alphabetical order.
    package let names: [Name]
    /// The time since name servers stopped answering promptly; `nil` while they answer promptly, or if none was
    /// queried.
    package let unresponsive: Duration?
    /// The number of lookup threads.
    package let threads: Int
    /// The number of questions that wait for a thread.
    package let waiting: Int

    init(_ core: ResolverCore, now: BootInstant) {
        let asked = core.pendingLookups.keys.filter { $0.generation == core.generation }
        let names = Set(core.cache.entries.keys).union(asked.map(\.name))
        self.names = names.sorted().map { Name($0, core, now: now) }
        unresponsive = core.unresponsivePeriod.since.map { now - $0 }
        threads = core.pool.threads
        waiting = core.pool.queue.count
    }
}

extension ResolverSnapshot.Name {
    fileprivate init(_ name: String, _ core: ResolverCore, now: BootInstant) {
        let entry = core.cache.entries[name]
        let question = ResolverCore.Question(name: name, generation: core.generation)
        let running = core.pool.start(of: question).map { now - $0 >= ResolverTimes.slowLookup } ?? false
        self.name = name
        (state, addresses) = Self.answer(core.cache.answer(for: name, now: now), entry)
        age = (entry?.answered ?? entry?.ended).map { now - $0 }
        failure = entry?.failure
        isSlow = running || entry?.isSlow ?? false
    }

    private static func answer(
        _ answer: AnswerCache.Answer,
        _ entry: AnswerCache.Entry?
    ) -> (State, [IPAddress]) {
        switch answer {
        case .fresh(.success(let addresses)): (.fresh, addresses)
        case .fresh(.failure): (.failed, [])
        case .stale(let addresses, _, _): (.stale, addresses)
        case .none: (entry?.failure == nil ? .resolving : .failed, [])
        }
    }
}

/// The decisions of a resolver: which answers come from the cache, which questions are looked up and when, and which
/// caller gets which answer. A value without I/O: it makes no calls and reads no clock.
///
/// A question is a name that must be looked up. Several callers may wait for the answer to one question.
package struct ResolverCore: Sendable {
    package typealias CallerID = UInt64
    typealias Instant = BootInstant
    typealias Outcome = NameResolver.Outcome

    /// A question, which is the key of a lookup. Callers with the same question share one lookup.
    struct Question: Hashable, Sendable {
        let name: String
        let generation: UInt64
    }

    /// An answer that must be delivered to a caller.
    struct Delivery: Equatable, Sendable {
        let caller: CallerID
        let outcome: Outcome
    }

    struct PendingLookup: Sendable {
        /// The callers that wait, in the order of their numbers.
        var callers: [(number: CallerID, urgency: NameResolver.Urgency)] = []
        /// Whether the lookup continues without any caller, to refresh a stale answer.
        var continuesWithoutCallers = false

        var isNeeded: Bool { callers.contains { $0.urgency == .needed } }
    }

    var cache: AnswerCache
    private(set) var pool: LookupPool<Question>
    private(set) var pendingLookups: [Question: PendingLookup] = [:]
    private var questions: [CallerID: Question] = [:]
    /// The times at which waiting callers get a stale answer, unless the lookup ends first. The delay is the same for
    /// all, so the entries are sorted by time.
    private var staleDeadlines = FIFOQueue<(due: Instant, caller: CallerID)>()
    private var lastCaller: CallerID = 0
    /// The number of renewals. It is part of each question, so answers to questions of an earlier generation are not
    /// cached.
    private(set) var generation: UInt64 = 0
    private(set) var unresponsivePeriod = UnresponsivePeriod()
    private let faults: ResolverFaults

    init(threads: Int, names: Int = ResolverTimes.maximumNames, faults: ResolverFaults = ResolverFaults()) {
        cache = AnswerCache(capacity: names)
        pool = LookupPool(size: threads)
        self.faults = faults
    }

    // MARK: Questions

    /// Adds a caller for a name. Returns the number of the caller, and the answer if it is known.
    mutating func resolve(_ name: String, _ urgency: NameResolver.Urgency, now: Instant) -> (
        CallerID, Outcome?
    ) {
        lastCaller += 1
        let question = Question(name: name, generation: generation)
        cache.touch(name)
        guard urgency == .needed else {
            join(question, urgency, now: now)
            return (lastCaller, nil)
        }
        switch cache.answer(for: name, now: now) {
        case .fresh(let outcome):
            return (lastCaller, outcome)
        case .stale(let addresses, isFailing: true, let recheckIsDue):
            if recheckIsDue { refreshInBackground(question) }
            return (lastCaller, .success(addresses))
        case .stale(let addresses, isFailing: false, _) where isLate(question, now: now):
            return (lastCaller, .success(addresses))
        case .stale:
            staleDeadlines.append((now + ResolverTimes.clientResponse, lastCaller))
            join(question, urgency, now: now)
        case .none:
            join(question, urgency, now: now)
        }
        return (lastCaller, nil)
    }

    private mutating func join(_ question: Question, _ urgency: NameResolver.Urgency, now: Instant) {
        questions[lastCaller] = question
        pendingLookups[question, default: PendingLookup()].callers.append((lastCaller, urgency))
        updateQueue(question)
    }

    private mutating func refreshInBackground(_ question: Question) {
        pendingLookups[question, default: PendingLookup()].continuesWithoutCallers = true
        updateQueue(question)
    }

    /// Returns whether the lookup of a question is in progress and takes longer than ``ResolverTimes/clientResponse``.
    private func isLate(_ question: Question, now: Instant) -> Bool {
        pool.start(of: question).map { now - $0 >= ResolverTimes.clientResponse } ?? false
    }

    /// Moves a question to the right place of the queue, or removes it if it is no longer needed. Has no effect if a
    /// thread has started its lookup.
    private mutating func updateQueue(_ question: Question) {
        guard !pool.isRunning(question), let pending = pendingLookups[question] else { return }
        guard pending.continuesWithoutCallers || !pending.callers.isEmpty else {
            pendingLookups[question] = nil
            return pool.dequeue(question)
        }
        pool.enqueue(question, rank(of: question.name, isNeeded: pending.isNeeded))
    }

    private func rank(of name: String, isNeeded: Bool) -> LookupQueue<Question>.Rank {
        switch faults.ignoresSlowNames ? false : cache.isSlow(name) {
        case nil: isNeeded ? .first : .firstRefresh
        case true?: isNeeded ? .slow : .slowRefresh
        case false?: isNeeded ? .known : .refresh
        }
    }

    /// Removes a caller. Returns `true` if it was waiting and no thread had started to look up its question.
    mutating func abandon(_ caller: CallerID) -> Bool {
        guard let question = remove(caller) else { return false }
        defer { if !faults.keepsAbandonedLookups { updateQueue(question) } }
        return !pool.isRunning(question)
    }

    /// Returns the time at which a thread started to look up the caller's question; `nil` if none has.
    func start(of caller: CallerID) -> Instant? {
        questions[caller].flatMap { pool.start(of: $0) }
    }

    private mutating func remove(_ caller: CallerID) -> Question? {
        guard let question = questions.removeValue(forKey: caller) else { return nil }
        pendingLookups[question]?.callers.removeAll { $0.number == caller }
        return question
    }

    // MARK: Threads

    mutating func takeNext(now: Instant) -> Question? { pool.takeNext(now: now) }

    mutating func grow(now: Instant) -> Int { pool.grow(now: now) }

    /// Handles a failure to start a thread. If there is no other thread, all waiting callers get this failure. It does
    /// not count against the name servers.
    mutating func threadFailed(_ failure: NameResolver.Failure, now: Instant) -> [Delivery] {
        pool.threadFailed()
        guard pool.threads == 0 else { return [] }
        return pool.dequeueAll().flatMap { deliveries(of: .failure(failure), to: $0, now: now) }
    }

    /// Records the result of a lookup. Returns the answers to deliver.
    mutating func end(_ question: Question, _ outcome: Outcome, now: Instant) -> [Delivery] {
        let outcome = outcome.map(Self.withoutDuplicates)
        let isSlow = pool.end(question, now: now) >= ResolverTimes.slowLookup
        if question.generation == generation {
            cache.store(outcome, for: question.name, isSlow: isSlow, now: now)
            unresponsivePeriod.record(isSlow: isSlow, isAnswered: Self.isAnswer(outcome), now: now)
        }
        return deliveries(of: outcome, to: question, now: now)
    }

    private mutating func deliveries(
        of outcome: Outcome,
        to question: Question,
        now: Instant
    ) -> [Delivery] {
        let callers = pendingLookups.removeValue(forKey: question)?.callers ?? []
        let forNeeded = orStaleAnswer(outcome, question.name, now: now)
        return callers.map { caller in
            questions[caller.number] = nil
            return Delivery(caller: caller.number, outcome: caller.urgency == .needed ? forNeeded : outcome)
        }
    }

    /// Replaces a failure by a stale answer if there is one. A failure stays if name servers answered that the name has
    /// no address.
    private func orStaleAnswer(_ outcome: Outcome, _ name: String, now: Instant) -> Outcome {
        guard case .failure(let failure) = outcome, !failure.isAuthoritative else { return outcome }
        return cache.staleAddresses(of: name, now: now).map { .success($0) } ?? outcome
    }

    private static func isAnswer(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .success: true
        case .failure(let failure): failure.isAuthoritative
        }
    }

    private static func withoutDuplicates(_ addresses: [IPAddress]) -> [IPAddress] {
        var seen: Set<IPAddress> = []
        return Array(addresses.filter { seen.insert($0).inserted }.prefix(ResolverTimes.maximumAddresses))
    }

    // MARK: Time

    /// The time at which the next stale answer may be due; `nil` if no caller can get one.
    var nextDue: Instant? { staleDeadlines.first?.due }

    /// Returns the stale answers that are due. The lookups of their questions continue.
    mutating func takeDue(now: Instant) -> [Delivery] {
        var deliveries: [Delivery] = []
        while let next = staleDeadlines.first, next.due <= now {
            _ = staleDeadlines.popFirst()
            if let delivery = staleDelivery(to: next.caller, now: now) { deliveries.append(delivery) }
        }
        return deliveries
    }

    private mutating func staleDelivery(to caller: CallerID, now: Instant) -> Delivery? {
        guard let question = questions[caller],
            let addresses = cache.staleAddresses(of: question.name, now: now)
        else { return nil }
        pendingLookups[question]?.continuesWithoutCallers = true
        _ = remove(caller)
        updateQueue(question)
        return Delivery(caller: caller, outcome: .success(addresses))
    }

    /// Invalidates all cached answers and all lookups in progress. Called when the network or the resolver's
    /// configuration has changed.
    ///
    /// - Later callers do not share a lookup in progress.
    /// - Questions that wait for a thread stay in the queue. Their answers come from the new network.
    /// - Callers with urgency `needed` that wait for a lookup in progress move to a new lookup.
    /// - Callers with urgency `refresh` get the answer of the lookup in progress. They must repeat their question.
    mutating func renew() {
        generation += 1
        cache.removeAll()
        unresponsivePeriod = UnresponsivePeriod()
        for old in pool.dequeueAll() { move(old) { _ in true } }
        for old in pendingLookups.keys.filter(pool.isRunning).sorted(by: { $0.generation < $1.generation }) {
            move(old) { $0 == .needed }
        }
    }

    /// Moves callers of an old question to the question with the same name in the current generation.
    private mutating func move(_ old: Question, _ isMoved: (NameResolver.Urgency) -> Bool) {
        guard old.generation < generation, var pending = pendingLookups.removeValue(forKey: old) else {
            return
        }
        let question = Question(name: old.name, generation: generation)
        let moved = pending.callers.filter { isMoved($0.urgency) }
        for caller in moved { questions[caller.number] = question }
        if pool.isRunning(old) {
            pending.callers.removeAll { isMoved($0.urgency) }
            pendingLookups[old] = pending
        }
        guard !moved.isEmpty else { return }
        pendingLookups[question, default: PendingLookup()].callers += moved
        pendingLookups[question]!.callers.sort { $0.number < $1.number }
        updateQueue(question)
    }
}

/// The durations and limits of a resolver.
package enum ResolverTimes {
    /// The time for which an answer is fresh: 30 s. `getaddrinfo(3)` returns no TTL; 30 s is shorter than most TTLs and
    /// longer than a burst of requests.
    package static let freshness: Duration = .seconds(30)
    /// The time for which a failure is returned without another lookup: 5 s. RFC 2308 §5 allows the TTL of the SOA
    /// record, but `getaddrinfo(3)` does not return it.
    package static let failureAge: Duration = .seconds(5)
    /// The time for which `EAI_AGAIN` is returned without another lookup: 1 s, the minimum of RFC 9520 §3.2.
    package static let temporaryFailureAge: Duration = .seconds(1)
    /// The maximum age of a stale answer: one hour. RFC 8767 §4 suggests days, for resolvers that many machines share.
    package static let staleLimit: Duration = .seconds(3600)
    /// The time for which a caller waits for a lookup before it gets a stale answer: 1.8 s, the client response timer
    /// of RFC 8767 §5.
    package static let clientResponse: Duration = .milliseconds(1800)
    /// The delay between a failed refresh and the next one while stale answers are used: 30 s, the failure recheck
    /// timer of RFC 8767 §5.
    package static let recheck: Duration = .seconds(30)
    /// The minimum duration of a lookup that counts as slow: 2 s. If the name servers respond, even a lookup through
    /// many delegations takes less. If one is silent, the C library waits 5 s before it tries again (`resolv.conf(5)`).
    package static let slowLookup: Duration = .seconds(2)
    /// The maximum number of names in the cache: 10,000. With one address each, they take about 3 MiB.
    package static let maximumNames = 10_000
    /// The maximum number of addresses per name. Further addresses are dropped.
    package static let maximumAddresses = 64
    /// The maximum number of concurrent lookups.
    package static let maximumThreads = 128
    /// The stack size of a resolver thread: 1 MiB. `getaddrinfo(3)` of glibc 2.36 needs a small part of it with
    /// `files` and `dns`. The rest is for other plugins of `nsswitch.conf(5)`. Only used pages take memory.
    package static let stackSize = 1024 * 1024
}

/// The period during which no name server has answered promptly. A value without I/O.
struct UnresponsivePeriod: Hashable, Sendable {
    /// The start of the period: the end of the first slow lookup after the last prompt answer. `nil` outside such a
    /// period.
    private(set) var since: BootInstant?

    /// Records the end of a lookup. A slow lookup begins the period, and a prompt answer ends it.
    ///
    /// - Parameters:
    ///   - isSlow: Whether the lookup was slow (``ResolverTimes/slowLookup``).
    ///   - isAnswered: Whether a name server answered. A lookup that failed immediately, for example without a route,
    ///     has no effect.
    mutating func record(isSlow: Bool, isAnswered: Bool, now: BootInstant) {
        if isSlow { since = since ?? now } else if isAnswered { since = nil }
    }
}

/// The faults that tests inject, to show that the tests would detect them.
package struct ResolverFaults: Sendable {
    /// Whether lookups of slow names may use all threads.
    package var ignoresSlowNames = false
    /// Whether a question stays in the queue after all its callers have abandoned it.
    package var keepsAbandonedLookups = false

    package init() {}
}

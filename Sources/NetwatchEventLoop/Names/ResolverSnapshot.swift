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

internal import NetwatchEventLoop

/// The addresses of a watched name, and the time of the next lookup. A pure value.
///
/// A failed lookup does not remove known addresses, because the name server is often behind the path that is being
/// checked. They are removed when name servers have answered twice in a row that the name has no addresses.
struct NameResolution: Sendable {
    typealias Instant = BootInstant

    /// The reason for requesting a lookup.
    enum Cause {
        /// The time ``NameResolution/due`` has come.
        case schedule
        /// The path to the host has changed.
        case pathChange
        /// The network or the resolver configuration has changed. A lookup in progress may wait for a name server that
        /// is no longer reachable, so a new lookup replaces it.
        case networkChange
    }

    /// A lookup that the caller must start. Its number distinguishes its result from the results of earlier lookups.
    struct Lookup: Equatable {
        let number: UInt64
    }

    /// The delay after the first failed lookup: 1 s. It doubles with each further failure, up to the refresh interval.
    static let firstRetryDelay: Duration = .seconds(1)
    /// The delay before the first refresh of unreachable addresses: 5 s. It doubles with each further refresh, up to
    /// the refresh interval. Unreachable addresses are refreshed sooner, because the name may soon get other addresses.
    static let firstDelayWhileUnreachable: Duration = .seconds(5)
    /// The maximum time for which the first status of a new watch waits for the first lookup: 2 s.
    static let firstStatusDelay: Duration = .seconds(2)
    /// The random variation of delays, as a part of the delay: 10 percent in either direction. It spreads the lookups
    /// of names that were watched at the same time.
    static let jitter = 0.1

    let name: String
    private let interval: Duration
    private(set) var addresses: [IPAddress] = []
    /// The time of the next lookup. `nil` before the first lookup, while a lookup is in progress, and while one waits for
    /// its turn.
    private(set) var due: Instant?
    /// The time until which the first status waits for the first lookup; `nil` once the status need not wait.
    private(set) var firstStatusDue: Instant?
    /// Whether the addresses are reachable; `nil` if unknown.
    private(set) var isReachable: Bool?

    private var current: Lookup?
    /// Whether a lookup is in progress.
    var isInProgress: Bool { current != nil }
    private var lastNumber: UInt64 = 0
    private var isRequestedAgain = false
    /// Whether a lookup waits for its turn.
    private var isWaiting = false
    private var consecutiveFailures = 0
    /// The number of consecutive answers without addresses.
    private var consecutiveAbsences = 0
    private var refreshesWhileUnreachable = 0

    /// - Parameter interval: The refresh interval while lookups succeed and the addresses are reachable.
    init(name: String, interval: Duration, now: Instant) {
        self.name = name
        self.interval = interval
        firstStatusDue = now + Self.firstStatusDelay
    }

    /// Begins with addresses that an earlier lookup of this process found. The first status then waits for no lookup.
    /// Has no effect if none of the addresses is valid.
    mutating func begin(with known: [IPAddress]) {
        take(known.compactMap(\.hostAddress))
        if !addresses.isEmpty { firstStatusDue = nil }
    }

    /// Returns whether a lookup is due at `now`.
    func isDue(at now: Instant) -> Bool {
        due.map { $0 <= now } ?? false
    }

    /// Requests a lookup. Returns its kind if the caller must call ``begin()`` when a lookup of this kind may start;
    /// `nil` if a lookup is in progress.
    ///
    /// A request during a lookup takes effect when that lookup has ended; after a network change, the new lookup
    /// replaces it.
    mutating func request(_ cause: Cause) -> LookupTurns.Kind? {
        if cause != .schedule { forgetDelays() }
        // An answer from another network says nothing about this one.
        if cause == .networkChange { consecutiveAbsences = 0 }
        // Only after a network change, a lookup waits while another one is in progress, which it replaces.
        guard current == nil || cause == .networkChange || isWaiting else {
            isRequestedAgain = true
            return nil
        }
        (due, isWaiting) = (nil, true)
        return lastNumber == 0 ? .first : .refresh
    }

    /// Begins the lookup that waits for its turn. The caller must start it.
    mutating func begin() -> Lookup {
        (due, isWaiting, isRequestedAgain) = (nil, false, false)
        lastNumber += 1
        let lookup = Lookup(number: lastNumber)
        current = lookup
        return lookup
    }

    /// Ends the wait of the first status if the first lookup will not start before the end of that wait.
    mutating func noteFirstLookup(startsAt start: Instant) {
        if let due = firstStatusDue, start >= due { firstStatusDue = nil }
    }

    private mutating func forgetDelays() {
        (consecutiveFailures, refreshesWhileUnreachable) = (0, 0)
    }

    /// Records the result of a lookup, unless a later lookup has replaced this one.
    ///
    /// - Parameter random: A random number from 0 to 1, which selects the jitter of the next delay.
    /// - Returns: Whether the caller must request another lookup, because one was requested during this one.
    mutating func end(_ lookup: Lookup, _ outcome: NameResolver.Outcome, now: Instant, random: Double) -> Bool
    {
        guard lookup == current else { return false }
        current = nil
        firstStatusDue = nil
        take(outcome)
        if !isWaiting { due = now + delay.jittered(by: Self.jitter, random) }
        if isReachable == false { refreshesWhileUnreachable += 1 }
        defer { isRequestedAgain = false }
        return isRequestedAgain
    }

    private mutating func take(_ outcome: NameResolver.Outcome) {
        switch outcome {
        case .success(let found) where found.contains(where: { $0.hostAddress != nil }):
            take(found.compactMap(\.hostAddress))
            (consecutiveFailures, consecutiveAbsences) = (0, 0)
            return
        case .success: consecutiveAbsences += 1
        case .failure(let failure):
            consecutiveAbsences = failure.isAuthoritative ? consecutiveAbsences + 1 : 0
        }
        consecutiveFailures += 1
        // One answer without addresses is not enough: routers without an uplink and name servers that are starting
        // also give it.
        if consecutiveAbsences >= 2 { addresses = [] }
    }

    /// Stores the addresses. If they are the known ones in another order, the known order stays, because name servers
    /// rotate their answers.
    ///
    /// If the order of the address families differs, the new order is stored, because it shows which family the
    /// resolver prefers.
    private mutating func take(_ found: [IPAddress]) {
        let isSame = Set(found) == Set(addresses) && found.map(\.family) == addresses.map(\.family)
        if !isSame { addresses = found }
    }

    private var delay: Duration {
        if consecutiveFailures > 0 {
            return Self.firstRetryDelay.doubled(times: consecutiveFailures - 1, upTo: interval)
        }
        if isReachable != false { return interval }
        return Self.firstDelayWhileUnreachable.doubled(times: refreshesWhileUnreachable, upTo: interval)
    }

    /// Records whether the addresses are reachable. If they have become unreachable, the next lookup is due sooner.
    mutating func note(isReachable: Bool, now: Instant) {
        let wasReachable = self.isReachable
        self.isReachable = isReachable
        if isReachable { return refreshesWhileUnreachable = 0 }
        guard wasReachable != false else { return }
        if let due, consecutiveFailures == 0 { self.due = min(due, now + delay) }
    }

    /// Returns whether a status may be published: the first lookup has ended, or ``firstStatusDelay`` has passed.
    mutating func mayHaveStatus(now: Instant) -> Bool {
        if let due = firstStatusDue, due <= now { firstStatusDue = nil }
        return firstStatusDue == nil
    }
}

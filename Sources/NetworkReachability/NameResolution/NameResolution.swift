internal import NetwatchEventLoop

/// The addresses of a watched name, and the time of the next lookup. A pure value.
///
/// A failed lookup does not remove known addresses: the name server is often behind the very path that is being
/// checked. They are removed only after name servers answer twice in a row that there are none.
struct NameResolution: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The reason for a lookup.
    enum Cause {
        /// The scheduled time has come.
        case schedule
        /// The path to the host has changed.
        case pathChange
        /// The network or the resolver configuration has changed, so a lookup in progress may be useless.
        case networkChange
    }

    /// A lookup that the caller must start. The number distinguishes its result from that of an earlier lookup.
    struct Lookup: Equatable {
        let number: UInt64
    }

    /// The delay before the retry after a failed lookup: 1 s, doubled after each failure up to the refresh interval.
    static let firstRetryDelay: Duration = .seconds(1)
    /// The first delay while the addresses are unreachable, doubled like ``firstRetryDelay``. The records may be
    /// about to change.
    static let firstDelayWhileUnreachable: Duration = .seconds(5)
    /// How long a new watch waits for its first lookup before it gets a status without it.
    static let firstStatusDelay: Duration = .seconds(2)
    /// The random variation of delays, so that names watched at the same time are not looked up at the same time.
    static let jitter = 0.1

    let name: String
    private let interval: Duration
    private(set) var addresses: [IPAddress] = []
    /// When the next lookup is due; `nil` while one is in progress.
    private(set) var due: Instant?
    /// The deadline until which the first status waits for the first lookup; `nil` when it need not wait.
    private(set) var firstStatusDue: Instant?
    /// Whether the addresses are reachable; `nil` if unknown.
    private(set) var isReachable: Bool?

    private var current: Lookup?
    private var lastNumber: UInt64 = 0
    private var isRequestedAgain = false
    /// Whether a lookup at `due` is reserved in the budget.
    private var isReserved = false
    private var consecutiveFailures = 0
    /// The number of consecutive answers that said that there are no addresses.
    private var consecutiveAbsences = 0
    private var refreshesWhileUnreachable = 0

    /// - Parameter interval: The refresh interval while lookups succeed and the addresses are reachable.
    init(name: String, interval: Duration, now: Instant) {
        self.name = name
        self.interval = interval
        firstStatusDue = now + Self.firstStatusDelay
    }

    /// Whether a lookup is due.
    func isDue(at now: Instant) -> Bool {
        due.map { $0 <= now } ?? false
    }

    /// Requests a lookup and returns the one to start now, if any. The first lookup needs no budget.
    mutating func request(_ cause: Cause, budget: inout LookupBudget, now: Instant) -> Lookup? {
        if cause != .schedule { forgetDelays() }
        // An answer from another network says nothing about this one.
        if cause == .networkChange { consecutiveAbsences = 0 }
        // A reservation made while a lookup is in progress comes from a network change, so it may replace that
        // lookup.
        guard current == nil || cause == .networkChange || isReserved else {
            isRequestedAgain = true
            return nil
        }
        if !isReserved, lastNumber > 0 {
            due = budget.reserve(now: now)
            isReserved = true
        }
        guard due.map({ $0 <= now }) ?? true else { return nil }
        return begin()
    }

    private mutating func begin() -> Lookup {
        (due, isReserved, isRequestedAgain) = (nil, false, false)
        lastNumber += 1
        let lookup = Lookup(number: lastNumber)
        current = lookup
        return lookup
    }

    private mutating func forgetDelays() {
        (consecutiveFailures, refreshesWhileUnreachable) = (0, 0)
    }

    /// Records the result of a lookup. The result of a lookup that a later one replaced is ignored.
    ///
    /// - Parameter random: A random number from 0 to 1 for the jitter.
    /// - Returns: Whether the caller must request another lookup, because something changed in the meantime.
    mutating func end(_ lookup: Lookup, _ outcome: NameResolver.Outcome, now: Instant, random: Double) -> Bool
    {
        guard lookup == current else { return false }
        current = nil
        firstStatusDue = nil
        take(outcome)
        if !isReserved { due = now + delay.jittered(by: Self.jitter, random) }
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
        // One such answer is not enough: routers without an uplink and name servers that are starting give it too.
        if consecutiveAbsences >= 2 { addresses = [] }
    }

    /// Stores the addresses. The same set in another order counts as unchanged, because name servers rotate their
    /// answers. A different order of the families is a change: the resolver then prefers the other family.
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

    /// Records whether the kernel can reach the addresses. Unreachable addresses are refreshed sooner.
    mutating func note(isReachable: Bool, now: Instant) {
        let wasReachable = self.isReachable
        self.isReachable = isReachable
        if isReachable { return refreshesWhileUnreachable = 0 }
        guard wasReachable != false else { return }
        if let due, !isReserved, consecutiveFailures == 0 { self.due = min(due, now + delay) }
    }

    /// Whether a status may be published: the first lookup has ended or timed out.
    mutating func mayHaveStatus(now: Instant) -> Bool {
        if let due = firstStatusDue, due <= now { firstStatusDue = nil }
        return firstStatusDue == nil
    }
}

internal import NetwatchEventLoop

/// The addresses of a watched name, and when to ask for them again. A pure value.
///
/// Addresses once found are kept when a later lookup fails: the name server is often behind the very path that is
/// being judged. Only when name servers say twice in a row that there are none do they go.
struct NameResolution: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Why a lookup is asked for.
    enum Cause {
        /// Its time has come.
        case schedule
        /// The way to the host is another one.
        case pathChange
        /// The machine is connected otherwise, or resolves names otherwise: a lookup under way may be in vain.
        case networkChange
    }

    /// A lookup for the caller to start. Its number tells its end from that of an earlier one.
    struct Lookup: Equatable {
        let number: UInt64
    }

    /// How long after a failed lookup the next one follows: 1 s, doubling up to the refresh interval.
    static let firstRetryDelay: Duration = .seconds(1)
    /// The same for a name whose addresses are out of reach: its records may be about to change.
    static let firstDelayWhileUnreachable: Duration = .seconds(5)
    /// How long a new watch waits for its first lookup before it gets a status all the same.
    static let firstStatusDelay: Duration = .seconds(2)
    /// Delays differ by so much at random, so that names that were watched together are not looked up together.
    static let jitter = 0.1

    let name: String
    private let interval: Duration
    private(set) var addresses: [IPAddress] = []
    /// When the next lookup is due; `nil` while one is under way.
    private(set) var due: Instant?
    /// Whether a status must wait for the first lookup, and until when.
    private(set) var firstStatusDue: Instant?
    /// Whether the addresses can be reached, as far as it is known.
    private(set) var isReachable: Bool?

    private var current: Lookup?
    private var lastNumber: UInt64 = 0
    private var isAskedAgain = false
    /// Whether the budget allows the lookup at `due`.
    private var isReserved = false
    private var failuresInARow = 0
    /// How many answers in a row said that there are no addresses.
    private var absencesInARow = 0
    private var refreshesWhileUnreachable = 0

    /// - Parameter interval: How often the addresses are asked for while all is well.
    init(name: String, interval: Duration, now: Instant) {
        self.name = name
        self.interval = interval
        firstStatusDue = now + Self.firstStatusDelay
    }

    /// Whether a lookup is due.
    func isDue(at now: Instant) -> Bool {
        due.map { $0 <= now } ?? false
    }

    /// Asks for a lookup. Returns the one to start now, if any. The first one needs no budget.
    mutating func ask(_ cause: Cause, budget: inout LookupBudget, now: Instant) -> Lookup? {
        if cause != .schedule { forgetDelays() }
        // An answer of another network says nothing about this one.
        if cause == .networkChange { absencesInARow = 0 }
        // What is reserved was asked for by a change of the network.
        guard current == nil || cause == .networkChange || isReserved else {
            isAskedAgain = true
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
        (due, isReserved, isAskedAgain) = (nil, false, false)
        lastNumber += 1
        let lookup = Lookup(number: lastNumber)
        current = lookup
        return lookup
    }

    private mutating func forgetDelays() {
        (failuresInARow, refreshesWhileUnreachable) = (0, 0)
    }

    /// Takes the result of a lookup. One that a later lookup has replaced changes nothing.
    ///
    /// - Parameter random: A number from 0 to 1, which decides about the jitter.
    /// - Returns: Whether the caller has to ask for another one, because something changed while it ran.
    mutating func end(_ lookup: Lookup, _ outcome: NameResolver.Outcome, now: Instant, random: Double) -> Bool
    {
        guard lookup == current else { return false }
        current = nil
        firstStatusDue = nil
        take(outcome)
        if !isReserved { due = now + delay.jittered(by: Self.jitter, random) }
        if isReachable == false { refreshesWhileUnreachable += 1 }
        defer { isAskedAgain = false }
        return isAskedAgain
    }

    private mutating func take(_ outcome: NameResolver.Outcome) {
        switch outcome {
        case .success(let found) where found.contains(where: { $0.ofHost != nil }):
            take(found.compactMap(\.ofHost))
            (failuresInARow, absencesInARow) = (0, 0)
            return
        case .success: absencesInARow += 1
        case .failure(let failure): absencesInARow = failure.isAuthoritative ? absencesInARow + 1 : 0
        }
        failuresInARow += 1
        // Routers without an uplink, and name servers that start, give such an answer once.
        if absencesInARow >= 2 { addresses = [] }
    }

    /// Addresses in another order are the same answer, name servers turn them round, unless the families are
    /// in another: then the resolver prefers another one than before.
    private mutating func take(_ found: [IPAddress]) {
        let isSame = Set(found) == Set(addresses) && found.map(\.family) == addresses.map(\.family)
        if !isSame { addresses = found }
    }

    private var delay: Duration {
        if failuresInARow > 0 { return doubled(Self.firstRetryDelay, times: failuresInARow - 1) }
        if isReachable != false { return interval }
        return doubled(Self.firstDelayWhileUnreachable, times: refreshesWhileUnreachable)
    }

    private func doubled(_ delay: Duration, times: Int) -> Duration {
        min(delay * (1 << min(times, 10)), interval)
    }

    /// Takes what the kernel says of the addresses. Those that are out of reach are asked for sooner.
    mutating func note(isReachable: Bool, now: Instant) {
        let wasReachable = self.isReachable
        self.isReachable = isReachable
        if isReachable { return refreshesWhileUnreachable = 0 }
        guard wasReachable != false else { return }
        if let due, !isReserved, failuresInARow == 0 { self.due = min(due, now + delay) }
    }

    /// Whether a status may be published: the first lookup ended, or has taken too long.
    mutating func mayHaveStatus(now: Instant) -> Bool {
        if let due = firstStatusDue, due <= now { firstStatusDue = nil }
        return firstStatusDue == nil
    }
}

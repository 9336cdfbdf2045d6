internal import NetwatchEventLoop

/// The addresses of a watched name, and when to ask for them again. A pure value.
///
/// One lookup runs at a time. Addresses once found are kept when a later lookup fails: the name server is
/// often behind the very path that is being judged.
struct NameResolution: Sendable {
    /// How long after a failed lookup the next one follows: 1 s, doubling up to a minute.
    static let firstRetryDelay: Duration = .seconds(1)
    static let longestRetryDelay: Duration = .seconds(60)
    /// How long a new watch waits for its first lookup before it gets a status all the same.
    static let firstStatusDelay: Duration = .seconds(2)

    let name: String
    private(set) var addresses: [IPAddress] = []
    /// When the next lookup is due; `nil` when none is.
    private(set) var retryDue: ContinuousClock.Instant?
    /// Whether a status must wait for the first lookup, and until when.
    private(set) var firstStatusDue: ContinuousClock.Instant?
    private var isInFlight = false
    private var isAskedAgain = false
    private var failuresInARow = 0

    init(name: String, now: ContinuousClock.Instant) {
        self.name = name
        firstStatusDue = now + Self.firstStatusDelay
    }

    /// Whether a lookup that failed is to be repeated.
    func isDue(at now: ContinuousClock.Instant) -> Bool {
        retryDue.map { $0 <= now } ?? false
    }

    /// Asks for a lookup. Returns whether the caller has to start one now.
    ///
    /// - Parameter afterPathChange: Whether failures on the path before should no longer delay the next try.
    mutating func begin(afterPathChange: Bool = false) -> Bool {
        retryDue = nil
        if afterPathChange { failuresInARow = 0 }
        guard !isInFlight else {
            isAskedAgain = true
            return false
        }
        isInFlight = true
        return true
    }

    /// Takes the result of the lookup. Returns whether the caller has to start another one now, because
    /// something changed while it ran.
    mutating func end(_ outcome: NameResolver.Outcome, now: ContinuousClock.Instant) -> Bool {
        isInFlight = false
        firstStatusDue = nil
        switch outcome {
        case .success(let found) where found.contains(where: { $0.ofHost != nil }):
            take(found.compactMap(\.ofHost))
            failuresInARow = 0
        case .success, .failure:
            let delay = Self.firstRetryDelay * (1 << min(failuresInARow, 10))
            retryDue = now + min(delay, Self.longestRetryDelay)
            failuresInARow += 1
        }
        defer { isAskedAgain = false }
        return isAskedAgain && begin()
    }

    /// Addresses in another order are the same answer, name servers turn them round, unless the families are
    /// in another: then the resolver prefers another one than before.
    private mutating func take(_ found: [IPAddress]) {
        let isSame = Set(found) == Set(addresses) && found.map(\.family) == addresses.map(\.family)
        if !isSame { addresses = found }
    }

    /// Whether a status may be published: the first lookup ended, or has taken too long.
    mutating func mayHaveStatus(now: ContinuousClock.Instant) -> Bool {
        if let due = firstStatusDue, due <= now { firstStatusDue = nil }
        return firstStatusDue == nil
    }
}

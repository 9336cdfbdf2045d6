internal import NetwatchEventLoop

/// Decides when the lookups of watched names start. A pure value.
///
/// First lookups and refreshes wait in separate lines, which take turns within a common budget. So thousands of new names
/// do not end the refreshes of others, and refreshes do not delay a new name. In addition, some first lookups may start at
/// once, so that a program that watches a list of hosts gets their statuses without a delay.
///
/// Lookups do not reserve times in advance: a queue that delivers to many hosts one after another, and so begins and
/// ends many watches, would delay all other lookups more and more.
struct LookupTurns: Sendable {
    typealias Instant = BootInstant

    /// The kinds of lookups.
    enum Kind: Sendable {
        /// The first lookup of a name.
        case first
        /// Any later lookup.
        case refresh
    }

    /// The number of lookups that may start at once, at least: 20. When a link returns, its addresses appear one after
    /// another, and each causes lookups of all names.
    static let burst = 20
    /// The number of first lookups that may start at once in addition: 100.
    static let firstBurst = 100
    /// The time in which one of these additional lookups becomes possible again: 2 s.
    static let firstSpacing: Duration = .seconds(2)

    private var budget: LookupBudget
    private var firstBudget = LookupBudget(spacing: firstSpacing, burst: firstBurst)
    private var first = LookupLine()
    private var refresh = LookupLine()
    /// Whether the next turn belongs to the first lookups, if names wait in both lines.
    private var isTurnOfFirst = true

    /// - Parameter perSecond: The maximum number of lookups per second. Less than 1 counts as 1.
    init(perSecond: Int) {
        let perSecond = max(1, perSecond)
        budget = LookupBudget(spacing: .seconds(1) / perSecond, burst: max(perSecond, Self.burst))
    }

    /// Makes a name wait for a lookup, unless it already waits for one of this kind. Returns whether it did not wait.
    @discardableResult
    mutating func add(_ name: String, _ kind: Kind) -> Bool {
        switch kind {
        case .first: first.append(name)
        case .refresh: refresh.append(name)
        }
    }

    /// Removes a name, which then waits for no lookup.
    mutating func remove(_ name: String) {
        first.remove(name)
        refresh.remove(name)
    }

    /// Removes and returns the next name whose lookup may start now; `nil` if none may.
    mutating func takeNext(now: Instant) -> String? {
        if !first.isEmpty, firstBudget.opening(now: now) <= now {
            firstBudget.take(now: now)
            return first.popFirst()
        }
        guard !first.isEmpty || !refresh.isEmpty, budget.opening(now: now) <= now else { return nil }
        budget.take(now: now)
        let takesFirst = refresh.isEmpty || (!first.isEmpty && isTurnOfFirst)
        isTurnOfFirst = !takesFirst
        return takesFirst ? first.popFirst() : refresh.popFirst()
    }

    /// Returns the time from which the next lookup may start; `nil` if no name waits.
    func opening(now: Instant) -> Instant? {
        if !first.isEmpty { return min(firstBudget.opening(now: now), budget.opening(now: now)) }
        return refresh.isEmpty ? nil : budget.opening(now: now)
    }

    /// Returns an estimate of the time at which the last of the first lookups that wait starts; `nil` if none waits. It
    /// starts later if refreshes wait, too.
    func lastFirstStart(now: Instant) -> Instant? {
        first.isEmpty ? nil : budget.opening(after: first.count - 1, now: now)
    }
}

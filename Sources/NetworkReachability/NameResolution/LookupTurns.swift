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

/// The names that wait for a lookup, in the order of their arrival. A pure value.
struct LookupLine: Sendable {
    private struct Entry: Sendable {
        let name: String
        let ticket: UInt64
    }

    /// When a name is removed, its entry stays in the queue. The entry is invalid, because its ticket no longer matches.
    private var entries = FIFOQueue<Entry>()
    private var tickets: [String: UInt64] = [:]
    private var lastTicket: UInt64 = 0
    private var invalidEntries = 0

    var isEmpty: Bool { tickets.isEmpty }

    /// The number of names that wait.
    var count: Int { tickets.count }

    /// The number of entries, including invalid ones. For tests.
    var entryCount: Int { count + invalidEntries }

    /// Appends a name, unless it already waits. Returns whether it was appended.
    mutating func append(_ name: String) -> Bool {
        guard tickets[name] == nil else { return false }
        lastTicket += 1
        tickets[name] = lastTicket
        entries.append(Entry(name: name, ticket: lastTicket))
        return true
    }

    /// Removes a name. Has no effect if it does not wait.
    mutating func remove(_ name: String) {
        guard tickets.removeValue(forKey: name) != nil else { return }
        invalidEntries += 1
        // Without this cleanup, watches that begin and end again and again would fill the memory.
        guard invalidEntries > 64 + count else { return }
        entries.keep { tickets[$0.name] == $0.ticket }
        invalidEntries = 0
    }

    /// Removes and returns the name that has waited for the longest time; `nil` if none waits.
    mutating func popFirst() -> String? {
        while let entry = entries.popFirst() {
            guard tickets[entry.name] == entry.ticket else {
                invalidEntries -= 1
                continue
            }
            tickets[entry.name] = nil
            return entry.name
        }
        return nil
    }
}

/// The limit on the lookups per second of watched names. A pure value.
///
/// Implements the generic cell rate algorithm (ITU-T I.371). Lookups are spread evenly. After a pause, some may start at
/// once.
struct LookupBudget: Sendable {
    typealias Instant = BootInstant

    private let spacing: Duration
    private let tolerance: Duration
    /// The time of the next lookup if all lookups were evenly spaced, without bursts.
    private var next: Instant?

    /// - Parameters:
    ///   - spacing: The time between two lookups at the maximum rate.
    ///   - burst: The number of lookups that may start at once. Less than 1 counts as 1.
    init(spacing: Duration, burst: Int) {
        self.spacing = spacing
        tolerance = spacing * (max(1, burst) - 1)
    }

    /// Returns the time from which a lookup may start if the given number of lookups starts before it. The time may be
    /// in the past.
    func opening(after count: Int = 0, now: Instant) -> Instant {
        max(next ?? now, now) + spacing * count - tolerance
    }

    /// Counts a lookup that starts now.
    mutating func take(now: Instant) {
        next = max(next ?? now, now) + spacing
    }
}

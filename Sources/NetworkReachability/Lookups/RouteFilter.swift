internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Keeps the filter of the listening socket in step with what is watched. It may let through too much at any
/// time, never too little: a new address opens it at once, and only when no more come is it made tight
/// around all of them.
struct RouteFilter {
    /// How long after the last new address the filter is made tight. Making it takes about a millisecond for
    /// 1,000 addresses, too long to do it for each.
    static let delay: Duration = .milliseconds(100)

    private let isWanted: Bool
    private var current = EventFilter.open
    /// When to make it tight; `nil` when it is.
    private(set) var due: ContinuousClock.Instant?

    init(isWanted: Bool) {
        self.isWanted = isWanted
    }

    func isDue(at now: ContinuousClock.Instant) -> Bool {
        due.map { $0 <= now } ?? false
    }

    /// Begins with a socket that has no filter.
    mutating func reset(now: ContinuousClock.Instant) {
        current = .open
        if isWanted { due = now + Self.delay }
    }

    /// Lets routes to these addresses through before this returns.
    mutating func cover(_ addresses: [IPAddress], _ events: EventSocket?, now: ContinuousClock.Instant) {
        guard isWanted, let events, !addresses.isEmpty else { return }
        if !addresses.allSatisfy(current.covers) {
            // Cannot fail for want of memory: it is one instruction. Then the one before is the open one too.
            guard (try? events.attach(.open)) != nil else { return }
            current = .open
        }
        due = now + Self.delay
    }

    /// Rejects what concerns none of the addresses.
    mutating func tighten(_ events: EventSocket, around book: AddressBook) {
        due = nil
        let filter = EventFilter(covering: book.addresses)
        // Without memory for it more is let through than need be.
        guard (try? events.attach(filter)) != nil else { return }
        current = filter
    }
}

internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Keeps the filter of the notification socket in step with the watched addresses.
///
/// The filter may pass too much, but never too little. A new address opens it immediately. When no more addresses are
/// added, it is narrowed to all of them.
struct RouteFilter {
    /// The delay between the last new address and narrowing the filter. Building it takes about a millisecond for
    /// 1,000 addresses, too long to do for each.
    static let delay: Duration = .milliseconds(100)

    private let isEnabled: Bool
    private var current = EventFilter.open
    /// When to narrow the filter; `nil` if that is not pending.
    private(set) var due: ContinuousClock.Instant?

    init(isEnabled: Bool) {
        self.isEnabled = isEnabled
    }

    func isDue(at now: ContinuousClock.Instant) -> Bool {
        due.map { $0 <= now } ?? false
    }

    /// Starts over for a socket that has no filter.
    mutating func reset(now: ContinuousClock.Instant) {
        current = .open
        if isEnabled { due = now + Self.delay }
    }

    /// Makes the filter pass routes to these addresses before this method returns.
    mutating func cover(_ addresses: [IPAddress], _ events: EventSocket?, now: ContinuousClock.Instant) {
        guard isEnabled, let events, !addresses.isEmpty else { return }
        if !addresses.allSatisfy(current.covers) {
            // Cannot fail for lack of memory, because it is one instruction. If it fails, the filter before is also
            // the open one.
            guard (try? events.attach(.open)) != nil else { return }
            current = .open
        }
        due = now + Self.delay
    }

    /// Makes the filter reject routes that cover none of the addresses.
    mutating func narrow(_ events: EventSocket, around book: AddressBook) {
        due = nil
        let filter = EventFilter(covering: book.addresses)
        // If memory is short, the socket keeps the filter that passes more.
        guard (try? events.attach(filter)) != nil else { return }
        current = filter
    }
}

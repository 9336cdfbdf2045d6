internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Keeps the kernel filter of the notification socket up to date with the watched addresses.
///
/// The filter may pass unnecessary notifications, but must never drop a necessary one. So a new address opens the
/// filter immediately. It is narrowed to all watched addresses when no address has been added for ``delay``.
struct RouteFilter {
    /// The delay between the last new address and narrowing the filter: 100 ms.
    ///
    /// Building a filter for 1,000 addresses takes about 1 ms. That is too long to repeat it for each new address.
    static let delay: Duration = .milliseconds(100)

    private let isEnabled: Bool
    private var current = EventFilter.open
    /// The time when the filter must be narrowed; `nil` if it is up to date.
    private(set) var due: BootInstant?

    init(isEnabled: Bool) {
        self.isEnabled = isEnabled
    }

    func isDue(at now: BootInstant) -> Bool {
        due.map { $0 <= now } ?? false
    }

    /// Resets the state for a new socket, which has no filter yet.
    mutating func reset(now: BootInstant) {
        current = .open
        if isEnabled { due = now + Self.delay }
    }

    /// Opens the filter if it does not pass the routes to these addresses yet. Effective when this method returns.
    mutating func cover(_ addresses: [IPAddress], _ events: EventSocket?, now: BootInstant) {
        guard isEnabled, let events, !addresses.isEmpty else { return }
        if !addresses.allSatisfy(current.covers) {
            // The open filter is a single instruction, so attaching it does not fail for lack of memory. It fails only
            // where no filter can be attached. The socket then has no filter, and passes everything.
            guard (try? events.attach(.open)) != nil else { return }
            current = .open
        }
        due = now + Self.delay
    }

    /// Makes the filter reject notifications of routes that cover none of the book's addresses.
    mutating func narrow(_ events: EventSocket, around book: AddressBook) {
        due = nil
        let filter = EventFilter(covering: book.addresses)
        // If this fails for lack of memory, the socket keeps its previous filter, which passes more.
        guard (try? events.attach(filter)) != nil else { return }
        current = filter
    }
}

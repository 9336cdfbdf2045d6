internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The addresses of all watched targets, and the kernel filter that passes the notifications about them.
///
/// Confined to the monitor's thread.
struct WatchedAddresses {
    /// The addresses with their verdicts. Only ``assign(_:to:_:now:)`` adds addresses, so that the filter covers each.
    private(set) var book: AddressBook
    private var filter: RouteFilter
    /// The slots whose last lookup failed. They are marked again by the next recomputation.
    private var unanswered: [AddressBook.Slot] = []

    /// - Parameters:
    ///   - filtersRoutes: Whether the kernel filters notifications of routes.
    ///   - ignoresLifetimes: See ``MonitorFaults/ignoresLifetimes``.
    init(filtersRoutes: Bool, ignoresLifetimes: Bool) {
        book = AddressBook(ignoresLifetimes: ignoresLifetimes)
        filter = RouteFilter(isEnabled: filtersRoutes)
    }

    /// Replaces the addresses of a target.
    ///
    /// Opens the notification filter for new addresses before their first lookup, so that no change is missed in
    /// between.
    mutating func assign(
        _ addresses: [IPAddress],
        to target: WatchedTarget,
        _ events: EventSocket?,
        now: BootInstant
    ) {
        filter.cover(addresses, events, now: now)
        book.assign(addresses, to: target)
    }

    /// Sets whether the paths to addresses may depend on the port; see ``AddressBook/distinguishPorts(_:of:)``.
    mutating func distinguishPorts(
        _ distinguishesPorts: Bool,
        of targets: some Sequence<WatchedTarget>
    ) -> AddressBook.Moves {
        book.distinguishPorts(distinguishesPorts, of: targets)
    }

    // MARK: Lookups

    mutating func mark(_ slots: [AddressBook.Slot]) { book.mark(slots) }

    mutating func mark(_ event: NetlinkEvent) { book.mark(event) }

    mutating func markEverything(deferred isDeferred: Bool = false) {
        book.markEverything(deferred: isDeferred)
    }

    /// Records that the lookup of addresses failed.
    mutating func lookupFailed(_ slots: some Sequence<AddressBook.Slot>) { unanswered += slots }

    /// Marks the addresses whose lookup failed.
    mutating func markUnanswered() {
        book.mark(unanswered)
        unanswered = []
    }

    /// Removes at most `limit` marks, and returns their addresses.
    mutating func takeMarked(atMost limit: Int) -> [AddressBook.Marked] { book.takeMarked(atMost: limit) }

    /// Stores the verdict of a lookup. Returns whether it has changed.
    mutating func update(
        _ slot: AddressBook.Slot,
        _ addressVerdict: AddressVerdict,
        now: BootInstant
    ) -> Bool {
        book.update(slot, addressVerdict, now: now)
    }

    // MARK: Lifetimes

    /// The time when ``markRenewable(now:)`` must be called; `nil` if no path can change without a notification.
    var renewableDue: BootInstant? { book.renewableDue }

    /// Marks the addresses whose path may have changed without a notification. Returns whether there are any.
    mutating func markRenewable(now: BootInstant) -> Bool { book.markRenewable(now: now) }

    // MARK: Filter

    /// The time when the filter must be narrowed; `nil` if it is up to date.
    var filterDue: BootInstant? { filter.due }

    func isFilterDue(at now: BootInstant) -> Bool { filter.isDue(at: now) }

    /// Resets the filter's state for a new socket, which has no filter yet.
    mutating func resetFilter(now: BootInstant) { filter.reset(now: now) }

    /// Makes the filter reject notifications of routes that cover none of the addresses.
    mutating func narrowFilter(_ events: EventSocket) { filter.narrow(events, around: book) }
}

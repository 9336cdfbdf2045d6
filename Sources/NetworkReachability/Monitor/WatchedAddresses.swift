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

/// The two netlink sockets of a monitor: one for notifications, one for requests. Confined to the monitor's thread.
///
/// With one socket, an overrun of notifications would also drop replies to lookups.
final class NetlinkConnection {
    let events: EventSocket
    let reader: PathReader
    private let loop: EventLoop
    private let registration: EventLoop.Registration

    /// Opens both sockets and watches the notification socket.
    ///
    /// The notification socket is opened before anything is read, so that no change after the first lookup is missed.
    ///
    /// - Parameter onEvents: Called on the loop's thread when notifications are pending.
    /// - Throws: ``SystemError`` if a socket cannot be opened or watched.
    init(
        loop: EventLoop,
        configuration: PathMonitor.Configuration,
        onEvents: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        events = try loop.inNetworkNamespace { () throws(SystemError) in
            try EventSocket(
                receiveBufferSize: CInt(clamping: configuration.receiveBufferSize),
                inherited: configuration.inheritedSocket,
                classes: configuration.faults.receivedClasses
            )
        }
        let requests = try loop.inNetworkNamespace { () throws(SystemError) in try RequestSocket() }
        let routes = ConnectionRoutes(
            socket: requests,
            ignoredFamilies: configuration.faults.ignoredSources
        ) { (query) throws(SystemError) in
            if let failure = configuration.faults.sourceFailure?() { throw failure }
            return try loop.inNetworkNamespace { () throws(SystemError) in
                try ConnectLookup.connect(for: query)
            }
        }
        reader = PathReader(
            socket: requests,
            routes: routes,
            generalAddresses: configuration.generalAddresses,
            // The mounted sysfs shows the process's namespace, not the one in the configuration.
            sysfs: configuration.networkNamespace == nil ? .system : .none
        )
        // The buffer of an inherited socket may be full. The kernel then drops all notifications until the buffer has
        // been empty once.
        _ = try events.drain()
        self.loop = loop
        registration = try loop.register(events.descriptor, for: .read) { _ in onEvents() }
    }

    deinit {
        loop.unregister(registration)
    }
}

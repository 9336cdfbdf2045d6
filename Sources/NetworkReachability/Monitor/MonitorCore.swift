internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The implementation of ``PathMonitor``, confined to the monitor's thread.
///
/// A kernel notification only marks the addresses that it may affect. Lookups of the marked addresses then find their
/// verdicts. If the status of a target changes, its subscribers are notified.
actor MonitorCore {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The error that makes netlink unavailable; `nil` while netlink is available.
    nonisolated let failure = Lock<SystemError?>(nil)

    let configuration: PathMonitor.Configuration
    private(set) var connection: NetlinkConnection?
    private var reconnectDue: BootInstant?
    var schedule: RecomputeSchedule
    var staleInterfaces = StaleInterfaces.everything
    /// Whether the interfaces were read before.
    var hasReadInterfaces = false
    /// Whether this machine has an address from which it can reach other machines; see
    /// ``InterfaceTable/hasOutboundSource``.
    var hasOutboundSource = false
    var isRemainderScheduled = false
    /// Whether a revalidation is in progress. Until it ends, each lookup updates its targets, even if the verdict is
    /// unchanged, because their generations must increase.
    var isRevalidating = false
    /// The statuses to deliver to subscribers at the end of a turn.
    ///
    /// They are not delivered earlier, because a subscriber may call the monitor. The statuses that this call causes
    /// must not overtake earlier ones.
    var outbox = Outbox()
    private var timer: (due: BootInstant, cancel: MonitorClock.Cancellation)?

    var addresses: WatchedAddresses
    var targets: [WatchKey: WatchedTarget] = [:]
    /// When something is due for each target.
    var wakeUps = Timetable<WatchedTarget, BootInstant>()
    var names: NameLookups
    /// The names to look up at the end of the turn, because the path to one of their targets has changed.
    var changedNames: Set<String> = []
    /// The general target. It is always watched, because the statuses of names without addresses depend on it, and each
    /// snapshot contains it.
    let general: WatchedTarget

    var statistics = PathMonitor.Statistics()
    var corrections = AuditCorrections()
    /// The verdicts on addresses before an audit moved them because the rules had changed; see
    /// ``AddressBook/Moves/verdicts``. Each is removed with the next lookup of its slot.
    var verdictsBeforeAudit: [AddressBook.Slot: [PathStatus.Verdict]] = [:]
    let snapshots: SnapshotPublisher

    private var clocks: ClockObserver?

    init(loop: EventLoop, configuration: PathMonitor.Configuration, resolver: NameResolver) {
        self.loop = loop
        self.configuration = configuration
        names = NameLookups(
            resolver,
            perSecond: configuration.nameLookupsPerSecond,
            interval: configuration.nameRefreshInterval
        )
        addresses = WatchedAddresses(
            filtersRoutes: configuration.filtersRoutes,
            ignoresLifetimes: configuration.faults.ignoresLifetimes
        )
        let now = configuration.clock.now()
        schedule = RecomputeSchedule(
            confirmDelay: configuration.confirmDelay,
            auditInterval: configuration.auditInterval,
            now: now
        )
        let key = WatchKey(target: .general, options: PathOptions())
        general = WatchedTarget(key, settle: configuration.settle)
        let resolving = PathStatus(
            target: .general,
            verdict: TargetVerdict(.unknown(.resolving)),
            pathGeneration: 0
        )
        snapshots = SnapshotPublisher(general: resolving)
    }

    var currentStatistics: PathMonitor.Statistics {
        statistics.auditCorrections = corrections.count(at: now)
        return statistics
    }

    var now: BootInstant { configuration.clock.now() }

    /// Runs `body` on the monitor's thread. For a caller on this thread, such as a subscriber, `body` runs before this
    /// method returns.
    nonisolated func perform(_ body: @escaping @Sendable (isolated MonitorCore) -> Void) {
        if loop.isCurrent { return assumeIsolated(body) }
        loop.execute(on: self, body)
    }

    // MARK: Netlink

    func start() {
        targets[general.key] = general
        observeClocks()
        connect()
        assign(configuration.generalAddresses, to: general)
        recompute(.everything, now: now)
        finish()
    }

    /// Revalidates all paths after each suspension, because changes in that time went unnoticed.
    private func observeClocks() {
        clocks = ClockObserver(loop: loop) { [weak self] _ in self?.perform { $0.revalidate() } }
        clocks?.start()
    }

    private func connect() {
        do {
            connection = try NetlinkConnection(loop: loop, configuration: configuration) { [weak self] in
                self?.assumeIsolated { $0.receiveEvents() }
            }
            failure.withLock { $0 = nil }
            reconnectDue = nil
            addresses.resetFilter(now: now)
        } catch {
            disconnect(error)
        }
    }

    /// Closes the netlink sockets after an error, and schedules reopening them after the reconnect interval.
    func disconnect(_ error: SystemError) {
        connection = nil
        hasOutboundSource = false
        failure.withLock { $0 = error }
        reconnectDue = now + configuration.reconnectInterval
    }

    /// Receives and processes all pending notifications.
    ///
    /// The lookups for the first notifications come before the check for others and for losses. Usually there are none,
    /// and the check would only delay the status. If draining detects a loss, everything is looked up again.
    func receiveEvents() {
        do {
            if let batch = try connection?.events.receive() { process(batch) }
            if let events = connection?.events, events.needsDraining { process(try events.drain()) }
        } catch {
            disconnect(error)
            recompute(.everything, now: now)
            finish()
        }
    }

    func catchUp() {
        receiveEvents()
        if addresses.book.hasMarks || !staleInterfaces.isEmpty { recompute(.changed, now: now) }
        finish()
    }

    /// Processes notifications. A notification is only a hint that something may have changed.
    func process(_ received: EventSocket.Batch) {
        let batch = configuration.faults.interceptor?(received) ?? received
        statistics.add(batch)
        guard batch.isOverrun || !batch.events.isEmpty else { return }
        if batch.isOverrun {
            markEverything()
        } else {
            for event in batch.distinctEvents { mark(event) }
        }
        let now = self.now
        corrections.retract(now: now) { addresses.book.isUrgent($0) }
        schedule.noteEvents(isOverrun: batch.isOverrun, now: now)
        tick(now: now)
    }

    private func mark(_ event: NetlinkEvent) {
        staleInterfaces.mark(event)
        addresses.mark(event)
    }

    private func markEverything() {
        staleInterfaces.markEverything()
        addresses.markEverything()
    }

    // MARK: Timers

    /// Performs all due work, and sets the timer for the next.
    func tick(now: BootInstant) {
        var due: [WatchedTarget] = []
        while let target = wakeUps.removeFirst(until: now) { due.append(target) }
        for target in due { addresses.mark(target.slots) }
        let hasRenewable = addresses.markRenewable(now: now)
        if let reconnect = reconnectDue, reconnect <= now {
            connect()
            recompute(.everything, now: now)
        } else if let run = schedule.takeDue(now: now) {
            recompute(run, now: now)
        } else if !due.isEmpty {
            recompute(.changed, now: now)
        }
        if hasRenewable { refreshMarked(.renewable, now: now) }
        for target in due { handleDue(target, now: now) }
        startLookups(now: now)
        if addresses.isFilterDue(at: now) { narrowFilter() }
        finish()
        clocks?.assumeIsolated { $0.check() }
    }

    /// Looks up all addresses as the audit does.
    ///
    /// - Returns: The number of corrections so far, including those that a notification may still explain.
    func audit() -> Int {
        catchUp()
        recompute(.audit, now: now)
        finish()
        return corrections.total
    }

    func narrowFilter() {
        if let events = connection?.events { addresses.narrowFilter(events) }
    }

    /// Does what is due for a target. If one of its addresses must still be looked up, because more than one slice was
    /// marked, ``refreshMarked(_:now:resolvesOnChange:)`` calls this method again. A wake-up time would not do:
    /// thousands of targets that wake up again and again would delay the lookups.
    func handleDue(_ target: WatchedTarget, now: BootInstant) {
        guard targets[target.key] === target else { return }
        target.isOverdue = addresses.book.isMarked(target.slots)
        if target.isOverdue { return }
        updateStatus(of: target, now: now)
        if let name = target.name, name.resolution.isDue(at: now) { resolve(name) }
    }

    /// Ends a turn of the loop: starts lookups of names, delivers statuses, publishes a snapshot if it changed, and
    /// sets the timer.
    func finish() {
        resolveChanged()
        outbox.deliver()
        snapshots.publishIfStale {
            let descriptions = connection?.reader.interfaces.descriptions ?? [:]
            return (descriptions.values.sorted { $0.index < $1.index }, status(of: general.key))
        }
        setTimer()
    }

    private func setTimer() {
        let ownDue = earliest(earliest(addresses.filterDue, addresses.renewableDue), schedule.nextDue)
        let targetDue = earliest(wakeUps.first, names.nextTurn(now: now))
        let due = earliest(earliest(reconnectDue, targetDue), ownDue)!
        // A timer that fires too early has no effect but to be set again. Each event postpones the confirmation, and
        // moving the timer every time would cost more.
        if let timer, timer.due <= due { return }
        timer?.cancel()
        let cancel = configuration.clock.schedule(loop, due) { [weak self] in
            self?.assumeIsolated { core in
                core.timer = nil
                core.tick(now: core.now)
            }
        }
        timer = (due, cancel)
    }
}

/// Counts the addresses whose verdict only the audit has corrected. A pure value.
///
/// A change that happens immediately before an audit is found by the audit before its notification arrives. So a
/// correction counts only if no notification that concerns the address arrives within ``grace``.
///
/// The corrections of a confirmation do not count, because the kernel announces some changes before it makes them. So
/// nothing is counted while notifications arrive more often than the audit interval: there is then no audit.
struct AuditCorrections: Sendable {
    /// The time for which a notification is awaited: 2 s. The kernel sends that of a changed carrier up to 1 s late
    /// (`linkwatch`).
    static let grace: Duration = .seconds(2)

    private var pending: [(slot: AddressBook.Slot, due: BootInstant)] = []
    private var counted = 0

    /// Records that an audit has changed the verdict on an address.
    mutating func note(_ slot: AddressBook.Slot, now: BootInstant) {
        pending.append((slot, now + Self.grace))
    }

    /// Retracts the corrections that have not been counted yet and that a notification explains.
    mutating func retract(now: BootInstant, where isExplained: (AddressBook.Slot) -> Bool) {
        guard !pending.isEmpty else { return }
        count(at: now)
        pending.removeAll { isExplained($0.slot) }
    }

    /// The number of corrections, including those that have not been counted yet.
    var total: Int { counted + pending.count }

    /// Counts the corrections whose time is over. Returns the total number of corrections.
    @discardableResult
    mutating func count(at now: BootInstant) -> Int {
        counted += pending.count { $0.due <= now }
        pending.removeAll { $0.due <= now }
        return counted
    }
}

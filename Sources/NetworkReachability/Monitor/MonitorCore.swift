internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import Synchronization

/// The monitor's state, confined to its thread: notifications mark it stale, lookups decide, and what
/// changed is told to the subscribers.
actor MonitorCore {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Why the kernel cannot be asked; `nil` while it can.
    nonisolated let failure = Mutex<SystemError?>(nil)

    let configuration: PathMonitor.Configuration
    let resolver: NameResolver
    var connection: NetlinkConnection?
    private var reconnectDue: ContinuousClock.Instant?
    var schedule: RecomputeSchedule
    var interfacesAreStale = true
    var isGoingOn = false
    /// What the kernel gave no answer about.
    var unanswered: [AddressBook.Slot] = []
    /// Whether every path is suspect until it has been looked up anew.
    var isRenewing = false
    /// Statuses on their way to whoever watches, in order. Told at the end of a turn: a subscriber may come back
    /// here, and what it brings about must not overtake what others are yet to hear.
    var outbox = Outbox()
    private var timer: (due: ContinuousClock.Instant, cancel: MonitorClock.Cancellation)?

    var book = AddressBook()
    var filter: RouteFilter
    var targets: [WatchKey: WatchedTarget] = [:]
    var wakeUps = WakeUps<WatchedTarget>()
    /// What may be spent on renewing the addresses of names.
    var lookupBudget: LookupBudget
    /// Always watched: a name that never resolved is judged by it.
    let general: WatchedTarget

    var statistics = PathMonitor.Statistics()
    var snapshot: NetworkSnapshot
    var snapshotIsStale = true
    var snapshotReceivers: [UInt64: SnapshotReceiver] = [:]

    private var clocks: ClockObserver?
    var resolverConfiguration: ResolverConfigurationWatch?

    init(loop: EventLoop, configuration: PathMonitor.Configuration, resolver: NameResolver) {
        self.loop = loop
        self.configuration = configuration
        self.resolver = resolver
        lookupBudget = LookupBudget(perSecond: configuration.nameLookupsPerSecond)
        filter = RouteFilter(isWanted: configuration.filtersRoutes)
        let now = configuration.clock.now()
        schedule = RecomputeSchedule(
            confirmDelay: configuration.confirmDelay,
            auditInterval: configuration.auditInterval,
            now: now
        )
        let key = WatchKey(target: .general, options: PathOptions())
        general = WatchedTarget(
            key,
            settle: configuration.settle,
            refreshInterval: configuration.nameRefreshInterval,
            now: now
        )
        let nothing = PathStatus(target: .general, finding: Finding(.unknown(.resolving)), pathGeneration: 0)
        snapshot = NetworkSnapshot(generation: 0, interfaces: [], general: nothing)
    }

    var now: ContinuousClock.Instant { configuration.clock.now() }

    /// Runs `body` on the monitor's thread: at once when called there, as subscribers do.
    nonisolated func perform(_ body: @escaping @Sendable (isolated MonitorCore) -> Void) {
        if loop.isCurrent { return assumeIsolated(body) }
        loop.execute { self.assumeIsolated(body) }
    }

    // MARK: The connection to the kernel

    func start() {
        targets[general.key] = general
        observeClocks()
        connect()
        rest(general, on: configuration.generalAddresses)
        recompute(.everything, now: now)
        finish()
    }

    /// After a suspension, or a step of the clock, time has passed that nobody saw.
    private func observeClocks() {
        clocks = ClockObserver(loop: loop) { [weak self] _ in self?.perform { $0.renew() } }
        clocks?.start()
    }

    private func connect() {
        do {
            connection = try NetlinkConnection(loop: loop, configuration: configuration) { [weak self] in
                self?.assumeIsolated { $0.receiveEvents() }
            }
            failure.withLock { $0 = nil }
            reconnectDue = nil
            filter.reset(now: now)
        } catch {
            disconnect(error)
        }
    }

    /// Without the kernel little is known. The sockets are opened again after a while.
    func disconnect(_ error: SystemError) {
        connection = nil
        failure.withLock { $0 = error }
        reconnectDue = now + configuration.reconnectInterval
    }

    func receiveEvents() {
        do {
            if let batch = try connection?.events.drain() { take(batch) }
        } catch {
            disconnect(error)
            recompute(.everything, now: now)
            finish()
        }
    }

    func catchUp() {
        receiveEvents()
        if book.hasMarks || interfacesAreStale { recompute(.changed, now: now) }
        finish()
    }

    /// Takes what the kernel announced. Nothing in it is believed but that something may have changed.
    func take(_ received: EventSocket.Batch) {
        let batch = configuration.faults.interceptor?(received) ?? received
        statistics.add(batch)
        guard batch.isOverrun || !batch.events.isEmpty else { return }
        if batch.isOverrun {
            markEverything()
        } else {
            for event in Set(batch.events) { mark(event) }
        }
        schedule.noteEvents(isOverrun: batch.isOverrun, now: now)
        tick()
    }

    private func mark(_ event: NetlinkEvent) {
        switch event {
        case .link, .address, .malformed: interfacesAreStale = true
        default: break
        }
        book.mark(event)
    }

    private func markEverything() {
        interfacesAreStale = true
        book.markEverything()
    }

    // MARK: What is due

    /// Does whatever is due, and sets the timer to the next thing that will be.
    func tick() {
        let now = self.now
        let due = wakeUps.takeDue(at: now)
        for target in due { book.mark(target.slots) }
        // A route may outlive its lifetime for a moment, and then says nothing more of its end.
        if due.contains(where: { $0.hasExpired(at: now) }) { schedule.noteEvents(isOverrun: false, now: now) }
        if let reconnect = reconnectDue, reconnect <= now {
            connect()
            recompute(.everything, now: now)
        } else if let run = schedule.takeDue(now: now) {
            recompute(run, now: now)
        } else if !due.isEmpty {
            recompute(.changed, now: now)
        }
        for target in due { attend(to: target, now: now) }
        if filter.isDue(at: now) { tightenFilter() }
        finish()
        clocks?.assumeIsolated { $0.check() }
    }

    func tightenFilter() {
        if let events = connection?.events { filter.tighten(events, around: book) }
    }

    private func attend(to target: WatchedTarget, now: ContinuousClock.Instant) {
        guard targets[target.key] === target else { return }
        // There is so much to look up that its turn is yet to come.
        if book.isMarked(target.slots) { return wakeUps.set(target, now + .milliseconds(1)) }
        judge(target, now: now)
        if target.name?.resolution.isDue(at: now) == true { resolve(target) }
    }

    /// Ends whatever this thread was woken for.
    func finish() {
        outbox.deliver()
        if snapshotIsStale { publishSnapshot() }
        setTimer()
    }

    private func setTimer() {
        let due = earliest(earliest(reconnectDue, wakeUps.earliest), earliest(filter.due, schedule.nextDue))!
        if timer?.due == due { return }
        timer?.cancel()
        let cancel = configuration.clock.schedule(loop, due) { [weak self] in
            self?.assumeIsolated { core in
                core.timer = nil
                core.tick()
            }
        }
        timer = (due, cancel)
    }

    func forget(_ target: WatchedTarget) {
        wakeUps.set(target, nil)
    }
}

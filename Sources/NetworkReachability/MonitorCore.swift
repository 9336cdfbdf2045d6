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
    private var schedule: RecomputeSchedule
    private var interfacesAreStale = true
    private var isGoingOn = false
    private var timer: (due: ContinuousClock.Instant, cancel: MonitorClock.Cancellation)?

    var book = AddressBook()
    var filter: RouteFilter
    var targets: [WatchKey: WatchedTarget] = [:]
    private var wakeUps = WakeUps<WatchedTarget>()
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
        filter = RouteFilter(isWanted: configuration.filtersRoutes)
        let now = configuration.clock.now()
        schedule = RecomputeSchedule(
            confirmDelay: configuration.confirmDelay,
            auditInterval: configuration.auditInterval,
            now: now
        )
        let key = WatchKey(target: .general, options: PathOptions())
        general = WatchedTarget(key, settle: configuration.settle, now: now)
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
    private func disconnect(_ error: SystemError) {
        connection = nil
        failure.withLock { $0 = error }
        reconnectDue = now + configuration.reconnectInterval
    }

    private func receiveEvents() {
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
        if batch.isOverrun { markEverything() }
        for event in batch.events { mark(event) }
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

    // MARK: Recomputation

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
        // It may have been given up meanwhile, by a subscriber of another.
        guard targets[target.key] === target else { return }
        judge(target, now: now)
        if target.resolution?.isDue(at: now) == true { resolve(target) }
    }

    private func recompute(_ run: RecomputeSchedule.Run, now: ContinuousClock.Instant) {
        statistics.recomputations += 1
        if run == .everything {
            interfacesAreStale = true
            book.markEverything(patiently: true)
            // Does nothing unless it failed before.
            resolverConfiguration?.start()
        }
        let isOtherNetwork = interfacesAreStale && readInterfaces()
        lookUpWhatIsMarked(run, now: now)
        // Names may have other addresses where the machine is connected otherwise.
        if isOtherNetwork { resolveAll() }
    }

    /// Reads the interfaces anew. Returns whether the machine is connected otherwise than before.
    private func readInterfaces() -> Bool {
        snapshotIsStale = true
        guard let reader = connection?.reader else { return false }
        let before = reader.interfaces
        do {
            let reading = try reader.readInterfaces()
            statistics.malformed += reading.malformed
            interfacesAreStale = reading.isInterrupted
            if reading.isInterrupted { schedule.noteEvents(isOverrun: false, now: now) }
        } catch {
            disconnect(error)
        }
        // The kernel revives next hops over it without a word.
        if reader.interfaces.hasBetterLink(than: before) { book.markEverything() }
        return reader.interfaces.waysOut != before.waysOut
    }

    /// How many addresses are looked up in one turn of the loop, about 5 ms: making sure of a hundred thousand
    /// must not keep what is urgent waiting.
    private static let sliceSize = 16 * PathReader.batchSize

    /// Looks up the addresses that may have changed, and tells those who watch what did.
    func lookUpWhatIsMarked(_ run: RecomputeSchedule.Run = .changed, now: ContinuousClock.Instant) {
        let marked = book.takeMarked(atMost: Self.sliceSize)
        var concerned: [WatchedTarget] = []
        for start in stride(from: 0, to: marked.count, by: PathReader.batchSize) {
            let batch = marked[start..<min(start + PathReader.batchSize, marked.count)]
            for (entry, judgement) in zip(batch, judgements(on: batch.map { ($0.address, $0.options) })) {
                if isLate(entry.slot, run) { continue }
                guard book.update(entry.slot, judgement, now: now) else { continue }
                book.forEachWatcher(of: entry.slot) { target in
                    if !target.isConcerned { concerned.append(target) }
                    target.isConcerned = true
                }
            }
        }
        statistics.lookups += marked.count
        for target in concerned {
            target.isConcerned = false
            judge(target, now: now)
        }
        if book.hasMarks { goOn(run) }
    }

    /// Looks up the rest in the next turn of the loop.
    private func goOn(_ run: RecomputeSchedule.Run) {
        guard !isGoingOn else { return }
        isGoingOn = true
        loop.execute { [weak self] in
            self?.assumeIsolated { core in
                core.isGoingOn = false
                core.lookUpWhatIsMarked(run, now: core.now)
                core.finish()
            }
        }
    }

    private func judgements(on addresses: [(IPAddress, SparseOptions)]) -> [Judgement] {
        guard let reader = connection?.reader else {
            return addresses.map { ConnectOracle.judge($0.0, $0.1.options) }
        }
        do {
            return try reader.judge(addresses)
        } catch {
            // As after an overrun, it is tried again and again, ever more slowly.
            schedule.noteEvents(isOverrun: true, now: now)
            return addresses.map { _ in Judgement(.unknown(.lookupFailed)) }
        }
    }

    private func isLate(_ slot: AddressBook.Slot, _ run: RecomputeSchedule.Run) -> Bool {
        configuration.faults.answersLate && run == .changed && book.verdict(at: slot) != nil
    }

    /// Draws the conclusion for a target from what is known of its addresses, and tells its subscribers of a
    /// new status.
    func judge(_ target: WatchedTarget, now: ContinuousClock.Instant) {
        let generation = target.hold.published?.pathGeneration
        let status = target.update(finding(on: target), now: now)
        target.expiryDue = target.slots.compactMap { book.expiry(at: $0) }.min()
        wakeUps.set(target, target.nextDue)
        guard let status else { return }
        // From a copy: a subscriber may come back here.
        for subscriber in target.subscribers { subscriber.deliver(status) }
        if let generation, generation != status.pathGeneration { resolve(target, afterPathChange: true) }
        if target === general {
            snapshotIsStale = true
            judgeUnresolved(now: now)
        }
    }

    private func judgeUnresolved(now: ContinuousClock.Instant) {
        for target in targets.values where target.slots.isEmpty {
            judge(target, now: now)
            resolve(target, afterPathChange: true)
        }
    }

    private func finding(on target: WatchedTarget) -> Finding {
        Finding(target.slots.compactMap { book.verdict(at: $0) }) ?? unresolved
    }

    /// A name that never resolved is out of reach when everything is; otherwise it cannot be told.
    private var unresolved: Finding {
        if connection == nil { return Finding(.unknown(.noNetlink)) }
        let way = finding(on: general)
        if case .notReachable = way.verdict { return way }
        return Finding(.unknown(.unresolved))
    }

    /// Time has passed that nobody saw: every path is suspect, and everything is looked up again.
    func renew() {
        let now = self.now
        for target in targets.values { target.hold.suspectPath() }
        recompute(.everything, now: now)
        for target in targets.values { judge(target, now: now) }
        resolveAll()
        finish()
    }

    /// Ends whatever this thread was woken for.
    func finish() {
        if snapshotIsStale { publishSnapshot() }
        setTimer()
    }

    private func setTimer() {
        let due = [reconnectDue, wakeUps.earliest, filter.due].compactMap(\.self).reduce(
            schedule.nextDue,
            min
        )
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

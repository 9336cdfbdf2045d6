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

    private let configuration: PathMonitor.Configuration
    private let resolver: NameResolver
    private var connection: NetlinkConnection?
    private var reconnectDue: ContinuousClock.Instant?
    private var schedule: RecomputeSchedule
    private var interfacesAreStale = true
    private var general = PathReader.Judgement.noNetlink
    private var records: [PathTarget: TargetRecord] = [:]
    private var timer: EventLoop.Timer?
    private(set) var statistics = PathMonitor.Statistics()

    init(loop: EventLoop, configuration: PathMonitor.Configuration, resolver: NameResolver) {
        self.loop = loop
        self.configuration = configuration
        self.resolver = resolver
        schedule = RecomputeSchedule(
            confirmDelay: configuration.confirmDelay,
            auditInterval: configuration.auditInterval,
            now: .now
        )
    }

    /// Runs `body` on the monitor's thread: at once when called there, as subscribers do.
    nonisolated func perform(_ body: @escaping @Sendable (isolated MonitorCore) -> Void) {
        if loop.isCurrent { return assumeIsolated(body) }
        loop.execute { self.assumeIsolated(body) }
    }

    // MARK: The connection to the kernel

    func start() {
        connect()
        recompute(.everything, now: .now)
        setTimer()
    }

    private func connect() {
        do {
            connection = try NetlinkConnection(loop: loop, configuration: configuration) { [weak self] in
                self?.assumeIsolated { $0.receiveEvents() }
            }
            failure.withLock { $0 = nil }
            reconnectDue = nil
        } catch {
            disconnect(error)
        }
    }

    /// Without the kernel nothing is known. The sockets are opened again after a while.
    private func disconnect(_ error: SystemError) {
        connection = nil
        failure.withLock { $0 = error }
        reconnectDue = .now + configuration.reconnectInterval
        general = .noNetlink
    }

    private func receiveEvents() {
        do {
            if let batch = try connection?.events.drain() { take(batch) }
        } catch {
            disconnect(error)
            recompute(.everything, now: .now)
            setTimer()
        }
    }

    /// Takes what the kernel announced. Nothing in it is believed but that something may have changed.
    func take(_ batch: EventSocket.Batch) {
        statistics.add(batch)
        let mustReadInterfaces: Set<NetlinkEvent> = [.link, .address, .malformed]
        if batch.isOverrun || !batch.events.isDisjoint(with: mustReadInterfaces) { interfacesAreStale = true }
        guard batch.isOverrun || !batch.events.subtracting([.irrelevant]).isEmpty else { return }
        schedule.noteEvents(isOverrun: batch.isOverrun, now: .now)
        tick()
    }

    // MARK: Recomputation

    /// Does whatever is due, and sets the timer to the next thing that will be.
    private func tick() {
        let now = ContinuousClock.now
        if let due = reconnectDue, due <= now {
            connect()
            recompute(.everything, now: now)
        } else if let run = schedule.takeDue(now: now) {
            recompute(run, now: now)
        } else if records.values.contains(where: { $0.isDue(at: now) }) {
            recompute(.changed, now: now)
        }
        for (target, record) in records where record.resolution?.isDue(at: now) == true { resolve(target) }
        setTimer()
    }

    private func recompute(_ run: RecomputeSchedule.Run, now: ContinuousClock.Instant) {
        statistics.recomputations += 1
        let isOtherNetwork = readKernel(run)
        for target in records.keys {
            // A name may have other addresses where the way to it is another.
            let isOtherWay = judge(target, now: now)
            if isOtherNetwork || isOtherWay { resolve(target, afterPathChange: true) }
        }
    }

    /// Brings interfaces and the general verdict up to date. Returns whether the machine is connected
    /// otherwise than before.
    private func readKernel(_ run: RecomputeSchedule.Run) -> Bool {
        guard let reader = connection?.reader else { return false }
        let before = (reader.interfaces.waysOut, general.verdict)
        do {
            if interfacesAreStale || run == .everything { try readInterfaces(reader) }
            general = reader.judge(PathTarget.representativeAddresses)!
        } catch {
            disconnect(error)
        }
        return before != (reader.interfaces.waysOut, general.verdict)
    }

    private func readInterfaces(_ reader: PathReader) throws(SystemError) {
        let reading = try reader.readInterfaces()
        statistics.malformed += reading.malformed
        interfacesAreStale = reading.isInterrupted
        if reading.isInterrupted { schedule.noteEvents(isOverrun: false, now: .now) }
    }

    /// Looks a target up and tells its subscribers of a new status. Returns whether its way is another.
    @discardableResult
    private func judge(_ target: PathTarget, now: ContinuousClock.Instant) -> Bool {
        let generation = records[target]?.hold.published?.pathGeneration
        let judgement = judgement(on: target)
        guard let status = records[target]?.update(judgement, now: now) else { return false }
        // From a copy: a subscriber may come back here.
        for deliver in records[target]?.subscribers.values.map(\.self) ?? [] { deliver(status) }
        return generation != nil && status.pathGeneration != generation
    }

    private func judgement(on target: PathTarget) -> PathReader.Judgement {
        guard let reader = connection?.reader else { return .noNetlink }
        switch target {
        case .general:
            return general
        case .host(let host):
            if case .address(let address) = host.kind { return reader.judge([address])! }
            return reader.judge(records[target]?.resolution?.addresses ?? []) ?? unresolved
        }
    }

    /// A name that never resolved is out of reach when everything is; otherwise it cannot be told.
    private var unresolved: PathReader.Judgement {
        if case .notReachable = general.verdict { return general }
        return PathReader.Judgement(verdict: .unknown(.unresolved), lifetime: nil)
    }

    private func setTimer() {
        if let timer { loop.cancel(timer) }
        let due = [reconnectDue, records.values.compactMap(\.nextDue).min()].compactMap(\.self)
        timer = loop.schedule(at: due.reduce(schedule.nextDue, min)) { [weak self] in
            self?.assumeIsolated { $0.tick() }
        }
    }

    // MARK: Names

    private func resolve(_ target: PathTarget, afterPathChange: Bool = false) {
        guard records[target]?.resolution?.begin(afterPathChange: afterPathChange) == true else { return }
        startLookup(target)
    }

    private func startLookup(_ target: PathTarget) {
        guard let name = records[target]?.resolution?.name else { return }
        resolver.resolve(name) { [weak self] outcome in
            self?.perform { $0.resolved(target, outcome) }
        }
    }

    private func resolved(_ target: PathTarget, _ outcome: NameResolver.Outcome) {
        let now = ContinuousClock.now
        let mustStartAnother = records[target]?.resolution?.end(outcome, now: now) ?? false
        if mustStartAnother { startLookup(target) }
        judge(target, now: now)
        setTimer()
    }

    // MARK: Subscribers

    func subscribe(_ id: UInt64, to target: PathTarget, _ deliver: @escaping @Sendable (PathStatus) -> Void) {
        if let published = records[target]?.hold.published {
            records[target]?.subscribers[id] = deliver
            return deliver(published)
        }
        let isNew = records[target] == nil
        let now = ContinuousClock.now
        var record = records[target] ?? TargetRecord(target: target, settle: configuration.settle, now: now)
        record.subscribers[id] = deliver
        records[target] = record
        guard isNew else { return }
        resolve(target)
        judge(target, now: now)
        setTimer()
    }

    func unsubscribe(_ id: UInt64, from target: PathTarget) {
        records[target]?.subscribers[id] = nil
        if records[target]?.subscribers.isEmpty == true { records[target] = nil }
    }

    /// The status last published, or what can be said of a target that has none yet.
    func status(of target: PathTarget) -> PathStatus {
        records[target]?.hold.published
            ?? PathStatus(target: target, verdict: .unknown(.resolving), pathGeneration: 0)
    }
}

extension PathReader.Judgement {
    fileprivate static let noNetlink = Self(verdict: .unknown(.noNetlink), lifetime: nil)
}

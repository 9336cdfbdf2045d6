/// Decides which lane may try how many requests when. A value: events and moments go in, actions come out.
package struct Scheduler: Sendable {
    package struct Settings: Hashable, Sendable {
        package var inflightPerLane = 8
        package var inflight = 32
        package var backoff = Backoff()
        /// So many single failures in a row close a lane (the default of Finagle's failure accrual).
        package var failuresToClose = 5
        /// How long a lane waits for the gate's first word: a little longer than the monitor takes to
        /// give one on a name that does not resolve.
        package var gatePatience: Duration = .milliseconds(2500)
        /// How long a lane waits whose server was not trusted.
        package var distrust: ClosedRange<Duration> = .seconds(300) ... .seconds(900)

        package init() {}
    }

    package struct LaneInfo: Hashable, Sendable {
        package let id: Int64
        package let host: String
        package let mode: LaneKey.Mode
        package let notBefore: Moment?

        package init(id: Int64, host: String, mode: LaneKey.Mode, notBefore: Moment? = nil) {
            self.id = id
            self.host = host
            self.mode = mode
            self.notBefore = notBefore
        }
    }

    package struct LaneRows: Hashable, Sendable {
        package let info: LaneInfo
        package let due: Moment

        package init(_ info: LaneInfo, due: Moment) {
            self.info = info
            self.due = due
        }
    }

    package enum Event: Hashable, Sendable {
        /// The lanes have requests, the first of them due then. Many at once, because each event looks at all lanes.
        case lanes([LaneRows])
        case gate(host: String, GateState)
        /// The answer to ``Action/claim(_:)``: how many requests are on their way now, and when the next
        /// of those left is due.
        case claimed(lane: Int64, taken: Int, due: Moment?)
        /// An outcome was written. `due`: when the request is tried again, if it is.
        case settled(lane: Int64, due: Moment?, isDistrusted: Bool)
        /// The moment of ``Scheduler/nextWake(now:)`` has come.
        case wake
        case flush
        case stop
    }

    package struct Claim: Hashable, Sendable {
        package let lane: Int64
        package let limit: Int
        package let expediting: Set<HoldReason>?
        package let epoch: Int
    }

    package enum Action: Hashable, Sendable {
        case claim(Claim)
        case dropConnections
        /// What is being sent to the host is on a path that is gone: it is to be ended, and sent again.
        case abort(host: String)
        case watch(String)
        case unwatch(String)
    }

    private struct Gate: Hashable, Sendable {
        var state: GateState?
        var since: Moment
    }

    let settings: Settings
    var random: SplitMix64
    var lanes: [Int64: SchedulerLane] = [:]
    private var ring: [Int64] = []
    private var cursor = 0
    private var gates: [String: Gate] = [:]
    private var isStopped = false

    package init(settings: Settings = Settings(), seed: UInt64) {
        self.settings = settings
        random = SplitMix64(seed: seed)
    }

    package mutating func handle(_ event: Event, now: Moment) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .lanes(let lanes): for lane in lanes { add(lane.info, due: lane.due, now: now, &actions) }
        case .gate(let host, let state): gateChanged(host, state, now: now, &actions)
        case .claimed(let lane, let taken, let due): claimed(lane, taken: taken, due: due, now: now)
        case .settled(let lane, let due, let isDistrusted):
            settled(lane, due: due, isDistrusted: isDistrusted, now: now)
        case .wake: break
        case .flush: flush(now: now)
        case .stop: isStopped = true
        }
        forgetIdle(&actions)
        releaseDistrusted(now: now)
        allot(now: now, &actions)
        return actions
    }

    package var inflight: Int { lanes.values.reduce(0) { $0 + $1.inflight } }

    package func isGateDown(_ host: String) -> Bool { gates[host]?.state == .notReachable }

    /// Whether the gate has not said anything yet.
    private func isGateSilent(_ host: String) -> Bool { gates[host].map { $0.state == nil } ?? false }
}

// MARK: - Events

extension Scheduler {
    private mutating func add(_ info: LaneInfo, due: Moment, now: Moment, _ actions: inout [Action]) {
        if lanes[info.id] == nil {
            lanes[info.id] = SchedulerLane(info)
            ring.append(info.id)
        }
        lanes[info.id]!.rowsAreDue(at: due)
        if gates[info.host] == nil {
            gates[info.host] = Gate(state: nil, since: now)
            actions.append(.watch(info.host))
        }
    }

    private mutating func gateChanged(
        _ host: String,
        _ state: GateState,
        now: Moment,
        _ actions: inout [Action]
    ) {
        guard let old = gates[host], old.state != state else { return }
        gates[host] = Gate(state: state, since: now)
        for id in ring where lanes[id]!.host == host {
            lanes[id]!.isForced = false
            if case .reachable = state { lanes[id]!.startAfresh(releasing: [.trust], now: now) }
        }
        guard case .reachable = state else { return }
        // At the first word too: connections outlive the lanes that made them, and the gate was not watched
        // meanwhile.
        actions.append(.dropConnections)
        if old.state != nil { actions.append(.abort(host: host)) }
    }

    private mutating func claimed(_ id: Int64, taken: Int, due: Moment?, now: Moment) {
        guard var lane = lanes[id], let claiming = lane.claiming else { return }
        lane.claiming = nil
        lane.inflight -= claiming - taken
        if taken > 0 { lane.lastTry = now }
        lane.due = [due, lane.dueMeanwhile].compactMap { $0 }.min()
        lane.dueMeanwhile = nil
        lanes[id] = lane
    }

    private mutating func settled(_ id: Int64, due: Moment?, isDistrusted: Bool, now: Moment) {
        guard var lane = lanes[id] else { return }
        lane.inflight -= 1
        // The next of a FIFO lane may go once the one before is settled.
        if let due = due ?? (lane.mode == .fifo ? now : nil) { lane.rowsAreDue(at: due) }
        // The path changed meanwhile: what was not trusted there may be here.
        if isDistrusted, lane.distrustedUntil == nil { lane.distrustedUntil = now }
        lanes[id] = lane
    }

    private mutating func flush(now: Moment) {
        for id in ring {
            lanes[id]!.startAfresh(releasing: [.trust, .configuration, .auth], now: now)
            lanes[id]!.serverNotBefore = .zero
            lanes[id]!.isHeld = false
            lanes[id]!.isForced = true
        }
    }

    private mutating func releaseDistrusted(now: Moment) {
        for id in ring {
            guard let until = lanes[id]!.distrustedUntil, until <= now else { continue }
            lanes[id]!.distrustedUntil = nil
            lanes[id]!.expediting = (lanes[id]!.expediting ?? []).union([.trust])
            lanes[id]!.rowsAreDue(at: now)
        }
    }

    private mutating func forgetIdle(_ actions: inout [Action]) {
        let idle = Set(ring.filter { lanes[$0]!.isIdle })
        guard !idle.isEmpty else { return }
        // The turn stays with the lane that has it.
        cursor -= ring.prefix(cursor).count { idle.contains($0) }
        ring.removeAll(where: idle.contains)
        if cursor >= ring.count { cursor = 0 }
        for id in idle { lanes[id] = nil }
        forgetGates(&actions)
    }

    private mutating func forgetGates(_ actions: inout [Action]) {
        let needed = Set(lanes.values.map(\.host))
        for host in gates.keys.filter({ !needed.contains($0) }).sorted() {
            gates[host] = nil
            actions.append(.unwatch(host))
        }
    }
}

// MARK: - Slots

extension Scheduler {
    /// Hands out free slots one lane after another, so that no lane takes them all.
    private mutating func allot(now: Moment, _ actions: inout [Action]) {
        guard !isStopped else { return }
        var grants: [Int64: Int] = [:]
        var (free, misses) = (settings.inflight - inflight, 0)
        while free > 0, misses < ring.count {
            let id = ring[cursor]
            cursor = (cursor + 1) % ring.count
            if mayTake(lanes[id]!, granted: grants[id, default: 0], now: now) {
                grants[id, default: 0] += 1
                (free, misses) = (free - 1, 0)
            } else {
                misses += 1
            }
        }
        for id in ring where grants[id] != nil { actions.append(.claim(claim(id, limit: grants[id]!))) }
    }

    private mutating func claim(_ id: Int64, limit: Int) -> Claim {
        defer {
            lanes[id]!.claiming = limit
            lanes[id]!.inflight += limit
            lanes[id]!.expediting = nil
        }
        let lane = lanes[id]!
        return Claim(lane: id, limit: limit, expediting: lane.expediting, epoch: lane.epoch)
    }

    private func mayTake(_ lane: SchedulerLane, granted: Int, now: Moment) -> Bool {
        guard lane.claiming == nil, lane.inflight + granted < capacity(of: lane) else { return false }
        guard let due = lane.due, due <= now, let opening = opening(of: lane) else { return false }
        return opening <= now
    }

    /// How many of the lane's requests may be on their way at once.
    private func capacity(of lane: SchedulerLane) -> Int {
        let isProbing = lane.isHalfOpen || (isGateDown(lane.host) && !lane.isForced)
        return lane.mode == .fifo || isProbing ? 1 : settings.inflightPerLane
    }

    /// From when the lane may try; `nil` until somebody acts.
    private func opening(of lane: SchedulerLane) -> Moment? {
        if lane.isHeld { return nil }
        let opening = lane.opening
        if lane.isForced { return opening }
        if isGateSilent(lane.host) { return max(opening, gates[lane.host]!.since + settings.gatePatience) }
        guard isGateDown(lane.host) else { return opening }
        // The gate may be wrong, so it is doubted once in a while.
        return max(opening, max(gates[lane.host]!.since, lane.lastTry ?? .zero) + settings.backoff.cap)
    }

    /// When something is to be done without anything happening; `nil` when never.
    package func nextWake(now: Moment) -> Moment? {
        guard !isStopped, inflight < settings.inflight else { return nil }
        return lanes.values.compactMap(wake).min()
    }

    private func wake(_ lane: SchedulerLane) -> Moment? {
        guard lane.claiming == nil, let opening = opening(of: lane) else { return nil }
        // The release of what is not trusted needs no slot.
        guard let due = lane.due, lane.inflight < capacity(of: lane) else { return lane.distrustedUntil }
        return min(max(due, opening), lane.distrustedUntil ?? .seconds(Int64.max))
    }

    /// Why a request of the lane has to wait although it is due; `nil` when it need not.
    package func obstacle(toLane id: Int64, now: Moment) -> QueuedReason? {
        if isStopped { return .stopped }
        // A claim under way may have the request.
        guard let lane = lanes[id], lane.claiming == nil else { return nil }
        guard let opening = opening(of: lane) else { return .laneClosed }
        guard opening > now else { return nil }
        if isGateDown(lane.host) { return .notReachable }
        // What waits only for the gate's first word waits for an answer worth having.
        return lane.opening > now ? .laneClosed : nil
    }
}

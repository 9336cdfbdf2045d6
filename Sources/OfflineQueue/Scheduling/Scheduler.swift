/// Decides which lane may try how many requests when. A value: events and moments go in, actions come out.
package struct Scheduler: Sendable {
    package struct Settings: Hashable, Sendable {
        package var inflightPerLane = 8
        /// Of all lanes to an origin together.
        package var inflightPerOrigin = 8
        package var inflight = 32
        package var backoff = Backoff()
        /// So many single failures in a row close a lane (the default of Finagle's failure accrual).
        package var failuresToClose = 5
        /// How long a lane waits for the gate's first word: a little longer than the monitor takes to
        /// give one on a name that does not resolve.
        package var gatePatience: Duration = .milliseconds(2500)
        /// How long a lane waits whose server was not trusted.
        package var distrust: ClosedRange<Duration> = .seconds(300) ... .seconds(900)

        /// From so long an attempt on, its origin gets no slot of the reserve until a shorter one.
        package var slowAttempt: Duration = .seconds(10)

        /// How long an attempt goes on after the path to its host was lost. A shorter loss over the same interface and
        /// address does not cut a connection: TCP retransmits.
        package var lossGrace: Duration = .seconds(3)
        /// How long after a change to reachable a failure to connect is repeated fast and without counting.
        package var reconnectTime: Duration = .seconds(5)
        /// The delay before the first fast repetition. It doubles with each one.
        package var reconnectDelay: Duration = .milliseconds(50)
        /// The pace while this machine is short of descriptors, memory, threads or ports.
        package var shortage = Backoff(base: .milliseconds(500), cap: .seconds(30))

        /// One of so many slots is only for origins with nothing in flight, at least one of two; 0: none is.
        package var reservedShare = 4

        package init() {}

        var reserved: Int { reservedShare > 0 && inflight > 1 ? max(1, inflight / reservedShare) : 0 }
    }

    package struct LaneInfo: Hashable, Sendable {
        package let id: Int64
        package let origin: Origin
        package let label: String
        package let mode: LaneKey.Mode
        package let notBefore: Moment?

        package init(
            id: Int64,
            origin: Origin,
            label: String = "",
            mode: LaneKey.Mode,
            notBefore: Moment? = nil
        ) {
            self.id = id
            self.origin = origin
            self.label = label
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
        /// The lanes have requests, the first of them due then.
        case lanes([LaneRows])
        /// The lanes have no requests any more.
        case emptied(lanes: [Int64])
        case gate(host: String, GateState)
        /// The answer to ``Action/claim(_:)``: how many requests are on their way now, and when the next
        /// of those left is due.
        case claimed(lane: Int64, taken: Int, due: Moment?)
        /// An outcome was written. `due`: when the request is tried again, if it is.
        case settled(lane: Int64, due: Moment?, isDistrusted: Bool)
        /// An outcome was written, and the claim of ``Scheduler/proceed(lane:after:now:)`` with it: whether it took a
        /// request, and when the next of those left is due.
        case proceeded(lane: Int64, taken: Int, due: Moment?)
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
        /// The host is reached by another path now. Attempts that may be repeated are ended and repeated.
        case abort(host: String)
        /// There is a path to the host again. Attempts whose packets were lost meanwhile are begun again, without an end.
        case restartStalled(host: String)
        /// The path to the host was lost, and the grace is over. All attempts that began before this time are ended.
        case endLost(host: String, begunBefore: Moment)
        case watch(String)
        case unwatch(String)
    }

    struct Gate: Sendable {
        var state: GateState?
        var since: Moment
        /// The lanes to its host.
        var lanes: Set<Int64> = []
        /// The path that attempts were last made over; `nil` when it is not known.
        var way: UInt64?
        /// Until when a failure to connect is repeated fast.
        var reconnectsUntil: Moment = .zero
        /// When the host was found again over another path, while attempts over the lost one are still in their grace.
        var foundAt: Moment?
    }

    let settings: Settings
    var random: SplitMix64
    var lanes: [Int64: SchedulerLane] = [:]
    var gates: [String: Gate] = [:]
    /// Each lane is in one of the two, in neither while only an event can change anything for it: among those that
    /// wait for a slot, or with the moment at which it is to be looked at again. See ``place(_:now:)``.
    var slots: OriginSlots
    var timetable = Timetable<Int64>()
    /// When the grace of each host whose path was lost is over.
    var graces = Timetable<String>()
    var isStopped = false

    package init(settings: Settings = Settings(), seed: UInt64) {
        self.settings = settings
        random = SplitMix64(seed: seed)
        let limits = OriginSlots.Limits(
            total: settings.inflight,
            perOrigin: settings.inflightPerOrigin,
            reserved: settings.reserved
        )
        slots = OriginSlots(limits: limits)
    }

    /// Costs O(log lanes) for each lane that the event concerns: one, but for a gate (those of its host) and a flush
    /// (all).
    package mutating func handle(_ event: Event, now: Moment) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .lanes(let lanes): for lane in lanes { add(lane.info, due: lane.due, now: now, &actions) }
        case .emptied(let lanes): for lane in lanes { emptied(lane, now: now) }
        case .gate(let host, let state): gateChanged(host, state, now: now, &actions)
        case .claimed(let lane, let taken, let due):
            claimed(lane, taken: taken, due: due, now: now)
            review(lane, now: now, &actions)
        case .settled(let lane, let due, let isDistrusted):
            settled(lane, due: due, isDistrusted: isDistrusted, now: now)
            review(lane, now: now, &actions)
        case .proceeded(let lane, let taken, let due):
            proceeded(lane, taken: taken, due: due, now: now)
            review(lane, now: now, &actions)
        case .wake: break
        case .flush: flush(now: now)
        case .stop:
            isStopped = true
            // The time to stop may be shorter than what is left of them, and attempts that it cuts off count.
            endGraces(until: .never, now: now, &actions)
        }
        endGraces(until: now, now: now, &actions)
        wakeLanes(now: now)
        allot(&actions)
        return actions
    }

    package var inflight: Int { slots.inflight }

    package func isGateDown(_ host: String) -> Bool { gates[host]?.state == .notReachable }

    /// What the gate of a host said last.
    package func gateState(of host: String) -> GateState? { gates[host]?.state }
}

// MARK: - Slots

extension Scheduler {
    /// Hands out free slots one after another, then claims all that a lane got at once.
    private mutating func allot(_ actions: inout [Action]) {
        guard !isStopped else { return }
        var (order, grants) = ([Int64](), [Int64: Int]())
        while let id = slots.take() {
            if grants[id] == nil { order.append(id) }
            grants[id, default: 0] += 1
            let lane = lanes[id]!
            // At the end of the line, so that no lane takes them all.
            if lane.inflight + grants[id]! < capacity(of: lane) { slots.join(id, of: lane.origin) }
        }
        for id in order { actions.append(.claim(claim(id, limit: grants[id]!))) }
    }

    private mutating func claim(_ id: Int64, limit: Int) -> Claim {
        let lane = lanes[id]!
        lanes[id]!.claiming = limit
        lanes[id]!.inflight += limit
        lanes[id]!.expediting = nil
        slots.leave(id, of: lane.origin)
        return Claim(lane: id, limit: limit, expediting: lane.expediting, epoch: lane.epoch)
    }

    /// When something is to be done without anything happening; `nil` when never.
    package func nextWake(now: Moment) -> Moment? {
        if isStopped { return nil }
        let firstLane = slots.isFull ? nil : timetable.first
        return [firstLane, graces.first].compactMap(\.self).min()
    }
}

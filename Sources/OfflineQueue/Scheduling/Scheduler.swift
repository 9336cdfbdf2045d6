/// Decides when each lane may try how many requests. It is a value: its inputs are events and times, its outputs are
/// actions.
package struct Scheduler: Sendable {
    package struct Settings: Hashable, Sendable {
        package var inflightPerLane = 8
        /// The maximum for all lanes of an origin together.
        package var inflightPerOrigin = 8
        package var inflight = 32
        package var backoff = Backoff()
        /// The number of single failures in a row that close a lane (the default of Finagle's failure accrual).
        package var failuresToClose = 5
        /// How long a lane waits for the gate's first state: slightly longer than the monitor takes to report one for a
        /// name that does not resolve.
        package var gateTimeout: Duration = .milliseconds(2500)
        /// How long a lane waits after its server was not trusted.
        package var distrust: ClosedRange<Duration> = .seconds(300) ... .seconds(900)

        /// The duration from which an attempt is slow. Its origin then gets no reserved slot until a faster attempt.
        package var slowAttempt: Duration = .seconds(10)

        /// How long an attempt continues after the path to its host was lost. A shorter loss over the same interface
        /// and address does not break a connection, because TCP retransmits.
        package var lossGrace: Duration = .seconds(3)
        /// How long after a host becomes reachable a failed connection is retried fast and is not counted.
        package var reconnectTime: Duration = .seconds(5)
        /// The delay before the first fast retry. It doubles with each one.
        package var reconnectDelay: Duration = .milliseconds(50)
        /// The backoff while this machine is short of descriptors, memory, threads or ports.
        package var shortage = Backoff(base: .milliseconds(500), cap: .seconds(30))

        /// The divisor for reserved slots: one of this many slots is kept for origins with nothing in flight, and at
        /// least one of two. 0 reserves none.
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
        /// Lanes have requests; `due` is when the first one is due.
        case lanes([LaneRows])
        /// Lanes have no requests left.
        case emptied(lanes: [Int64])
        case gate(host: String, GateState)
        /// The result of ``Action/claim(_:)``: the number of requests taken, and when the next remaining one is due.
        case claimed(lane: Int64, taken: Int, due: Moment?)
        /// An outcome was written. `due` is when the request is retried, if it is.
        case settled(lane: Int64, due: Moment?, isDistrusted: Bool)
        /// An outcome and the claim of ``Scheduler/claimNext(lane:after:now:)`` were written: the number of requests
        /// taken, and when the next remaining one is due.
        case nextClaimed(lane: Int64, taken: Int, due: Moment?)
        /// The time of ``Scheduler/nextWake(now:)`` has come.
        case wake
        case flush
        case stop
    }

    package struct Claim: Hashable, Sendable {
        package let lane: Int64
        package let limit: Int
        package let releasing: Set<HoldReason>?
        package let epoch: Int
    }

    package enum Action: Hashable, Sendable {
        case claim(Claim)
        case dropConnections
        /// The host is now reachable by another path. Attempts that are safe to repeat are ended and repeated.
        case abort(host: String)
        /// There is a path to the host again. Attempts whose packets were lost meanwhile send them again, without
        /// ending.
        case restartStalled(host: String)
        /// The path to the host was lost and the grace period is over. All attempts that began before the given time
        /// are ended.
        case endLost(host: String, begunBefore: Moment)
        case watch(String)
        case unwatch(String)
    }

    struct Gate: Sendable {
        var state: GateState?
        var since: Moment
        /// The lanes to the host.
        var lanes: Set<Int64> = []
        /// The path of the latest attempts; `nil` if it is not known.
        var route: UInt64?
        /// The time until which a failed connection is retried fast.
        var reconnectsUntil: Moment = .zero
        /// The paths that were lost or left while attempts used them, the earliest first. Each has its own grace
        /// period.
        var losses: [Loss] = []
    }

    /// A path that was lost or is no longer used.
    struct Loss: Sendable {
        let at: Moment
        /// When another path was found. Attempts that began later do not use this one.
        var foundAt: Moment?
    }

    let settings: Settings
    var random: SplitMix64
    var lanes: [Int64: SchedulerLane] = [:]
    var gates: [String: Gate] = [:]
    /// The lanes that wait for a slot. A lane that waits for a time is in ``timetable`` instead. A lane that only an
    /// event can change is in neither. See ``place(_:now:)``.
    var slots: OriginSlots
    var timetable = Timetable<Int64>()
    /// The end of the first grace period for each host whose path was lost.
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

    /// Processes an event and returns the resulting actions. Costs O(log lanes) for each affected lane: the host's
    /// lanes for a gate event, all lanes for a flush, otherwise the lanes of the event.
    package mutating func handle(_ event: Event, now: Moment) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .lanes(let lanes): for lane in lanes { add(lane.info, due: lane.due, now: now, &actions) }
        case .emptied(let lanes): for lane in lanes { emptied(lane, now: now) }
        case .gate(let host, let state): gateChanged(host, state, now: now, &actions)
        case .claimed(let lane, let taken, let due):
            claimed(lane, taken: taken, due: due, now: now)
            removeIfIdle(lane, now: now, &actions)
        case .settled(let lane, let due, let isDistrusted):
            settled(lane, due: due, isDistrusted: isDistrusted, now: now)
            removeIfIdle(lane, now: now, &actions)
        case .nextClaimed(let lane, let taken, let due):
            nextClaimed(lane, taken: taken, due: due, now: now)
            removeIfIdle(lane, now: now, &actions)
        case .wake: break
        case .flush: flush(now: now)
        case .stop:
            isStopped = true
            // The stop timeout may be shorter than a grace period, and attempts that it ends would be counted.
            endGraces(until: .never, now: now, &actions)
        }
        endGraces(until: now, now: now, &actions)
        wakeLanes(now: now)
        grantSlots(&actions)
        return actions
    }

    package var inflight: Int { slots.inflight }

    package func isGateDown(_ host: String) -> Bool { gates[host]?.state == .notReachable }

    /// Returns the last state of a host's gate.
    package func gateState(of host: String) -> GateState? { gates[host]?.state }
}

// MARK: - Slots

extension Scheduler {
    /// Allocates free slots one by one, then claims each lane's slots at once.
    private mutating func grantSlots(_ actions: inout [Action]) {
        guard !isStopped else { return }
        var (order, grants) = ([Int64](), [Int64: Int]())
        while let id = slots.take() {
            if grants[id] == nil { order.append(id) }
            grants[id, default: 0] += 1
            let lane = lanes[id]!
            // The lane joins at the end of the line, so that it does not take all slots.
            if lane.inflight + grants[id]! < capacity(of: lane) { slots.join(id, of: lane.origin) }
        }
        for id in order { actions.append(.claim(claim(id, limit: grants[id]!))) }
    }

    private mutating func claim(_ id: Int64, limit: Int) -> Claim {
        let lane = lanes[id]!
        lanes[id]!.claiming = limit
        lanes[id]!.inflight += limit
        lanes[id]!.releasing = nil
        slots.leave(id, of: lane.origin)
        return Claim(lane: id, limit: limit, releasing: lane.releasing, epoch: lane.epoch)
    }

    /// The time at which work is due without an event; `nil` if there is none.
    package func nextWake(now: Moment) -> Moment? {
        if isStopped { return nil }
        let firstLane = slots.isFull ? nil : timetable.first
        return [firstLane, graces.first].compactMap(\.self).min()
    }
}

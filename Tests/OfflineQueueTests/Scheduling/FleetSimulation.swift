internal import NetwatchEventLoop

@testable internal import OfflineQueue

/// The network and the servers of a ``FleetSimulation``.
protocol SimulatedNetwork {
    /// Returns the outcome of an attempt, and the time until it is known.
    mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration)
    /// Called when the time of an outcome has come, before its queue learns of it.
    mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment)
    /// Returns the finding of a probe for captive portals, and the time until it is known.
    mutating func probe(_ host: String, now: Moment) -> (finding: PortalFinding, after: Duration)
}

extension SimulatedNetwork {
    mutating func probe(_ host: String, now: Moment) -> (finding: PortalFinding, after: Duration) {
        (.clear, .milliseconds(50))
    }
}

/// An attempt in a ``FleetSimulation``.
struct FleetArrival {
    let at: Moment
    let queue: Int
    let lane: Scheduler.LaneInfo
    let row: Int
    /// The number of earlier attempts of the request.
    let attempts: Int
    let claim: Scheduler.Claim
}

/// Queues in virtual time: each has a scheduler, and arrays in place of a store. A claim is executed at once;
/// `SchedulerSimulation` tests claims that take time.
struct FleetSimulation<Network: SimulatedNetwork> {
    private struct Queue {
        var scheduler: Scheduler
        var lanes: [Int64: SimulatedLane] = [:]
        /// The state of the gate of all hosts that are watched.
        var gate: GateState
        var nextRow = 0
    }

    /// The number of lanes that were loaded.
    private(set) var loads = 0
    /// The largest number of lanes that a queue had in memory.
    private(set) var mostLanes = 0

    private enum Event {
        case enqueue(queue: Int, lane: Int64, count: Int)
        case gate(queue: Int, GateState)
        case outcome(FleetArrival, LaneEffect)
        case loaded(queue: Int, lanes: [Int64])
        case probed(queue: Int, Endpoint, probe: Int, PortalFinding)
    }

    var network: Network
    private(set) var now: Moment = .zero
    private(set) var delivered = 0
    private var queues: [Queue] = []
    private var events: [Int: Event] = [:]
    private var planned = Timetable<Int, Moment>()
    private var wakes = Timetable<Int, Moment>()
    private var lastEvent = 0

    init(_ network: Network) {
        self.network = network
    }

    /// Adds a queue whose requests go to the given lanes.
    mutating func addQueue(
        _ settings: Scheduler.Settings,
        seed: UInt64,
        lanes: [Scheduler.LaneInfo],
        gate: GateState
    ) {
        let lanes = Dictionary(uniqueKeysWithValues: lanes.map { ($0.id, SimulatedLane(info: $0)) })
        queues.append(Queue(scheduler: Scheduler(settings: settings, seed: seed), lanes: lanes, gate: gate))
    }

    mutating func enqueue(_ count: Int = 1, queue: Int = 0, lane: Int64 = 1, at moment: Moment) {
        plan(.enqueue(queue: queue, lane: lane, count: count), at: moment)
    }

    /// Changes the state of all hosts of a queue.
    mutating func turn(_ gate: GateState, queue: Int = 0, at moment: Moment) {
        plan(.gate(queue: queue, gate), at: moment)
    }

    /// The number of requests that are not delivered.
    var unfinished: Int {
        queues.reduce(0) { sum, queue in
            sum + queue.lanes.values.reduce(0) { $0 + $1.waiting.count + $1.sending.count }
        }
    }

    func waiting(inLane lane: Int64, queue: Int = 0) -> Int { queues[queue].lanes[lane]!.waiting.count }

    private mutating func plan(_ event: Event, at moment: Moment) {
        lastEvent += 1
        events[lastEvent] = event
        planned.set(lastEvent, to: moment)
    }
}

// MARK: - Time

extension FleetSimulation {
    /// Simulates until the time, or until nothing is left to happen.
    mutating func run(until end: Moment) {
        while let next = [planned.first, wakes.first].compactMap(\.self).min(), next <= end {
            now = max(now, next)
            if planned.first == next, let id = planned.removeFirst(until: next) {
                handle(events.removeValue(forKey: id)!)
            } else if let queue = wakes.removeFirst(until: next) {
                feed(.wake, queue)
            }
        }
        now = max(now, end)
    }

    private mutating func handle(_ event: Event) {
        switch event {
        case .enqueue(let queue, let lane, let count): enqueue(count, queue, lane)
        case .gate(let queue, let state):
            queues[queue].gate = state
            for endpoint in Set(queues[queue].lanes.values.map(\.info.origin.endpoint)).sorted() {
                feed(.gate(endpoint, state), queue)
            }
        case .loaded(let queue, let lanes):
            let rows = lanes.map { queues[queue].lanes[$0]! }.map { Scheduler.LaneRows($0.info, due: $0.due) }
            feed(.loaded(rows, missing: []), queue)
        case .outcome(let arrival, let effect): conclude(arrival, effect)
        case .probed(let queue, let endpoint, let probe, let finding):
            feed(.portalProbed(endpoint, probe: probe, finding), queue)
        }
    }

    private mutating func enqueue(_ count: Int, _ queue: Int, _ lane: Int64) {
        for _ in 0..<count {
            queues[queue].lanes[lane]!.insert(SimulatedLane.Row(number: queues[queue].nextRow, due: now))
            queues[queue].nextRow += 1
        }
        let info = queues[queue].lanes[lane]!.info
        feed(.lanes([Scheduler.LaneRows(info, due: now)]), queue)
    }

    private mutating func feed(_ event: Scheduler.Event, _ queue: Int) {
        for action in queues[queue].scheduler.handle(event, now: now) {
            switch action {
            case .claim(let claim):
                execute(claim, queue) { .claimed(lane: claim.lane, taken: $0, use: $1, due: $2) }
            case .load(let lanes):
                loads += lanes.count
                plan(.loaded(queue: queue, lanes: lanes), at: now + .milliseconds(1))
            case .watch(let endpoint): feed(.gate(endpoint, queues[queue].gate), queue)
            case .unwatch, .dropConnections, .abort, .interrupt, .restartStalled, .endLost, .release: break
            case .probePortal(let endpoint, let probe):
                let (finding, delay) = network.probe(endpoint.host, now: now)
                plan(.probed(queue: queue, endpoint, probe: probe, finding), at: now + delay)
            }
        }
        mostLanes = max(mostLanes, queues[queue].scheduler.lanes.count)
        wakes.set(queue, to: queues[queue].scheduler.nextWake(now: now))
    }
}

// MARK: - The store and the network

extension FleetSimulation {
    private mutating func execute(
        _ claim: Scheduler.Claim,
        _ queue: Int,
        _ event: (Int, RetryUse, Moment?) -> Scheduler.Event
    ) {
        let taken = queues[queue].lanes[claim.lane]!.take(claim, now: now)
        let info = queues[queue].lanes[claim.lane]!.info
        for row in taken {
            let arrival = FleetArrival(
                at: now,
                queue: queue,
                lane: info,
                row: row.number,
                attempts: row.attempts,
                claim: claim
            )
            let maySend = queues[queue].scheduler.mayStillSend(lane: claim.lane, now: now)
            let (effect, delay) = maySend ? network.reply(to: arrival) : (.renewed, .zero)
            plan(.outcome(arrival, effect), at: now + delay)
        }
        let use = RetryUse(
            of: claim.retries,
            taken: taken.count,
            retries: taken.count { $0.attempts > 0 }
        )
        feed(event(taken.count, use, queues[queue].lanes[claim.lane]!.due), queue)
    }

    private mutating func conclude(_ arrival: FleetArrival, _ effect: LaneEffect) {
        network.ended(arrival, effect, now: now)
        let (queue, id, claim) = (arrival.queue, arrival.lane.id, arrival.claim)
        var row = queues[queue].lanes[id]!.sending.removeValue(forKey: arrival.row)!
        row.attempts += 1
        if effect == .foreign { queues[queue].scheduler.suspectPortal(lane: id, now: now) }
        let settlement = queues[queue].scheduler.conclude(
            lane: id,
            epoch: claim.epoch,
            effect: effect,
            failures: row.attempts,
            course: AttemptCourse(duration: now - arrival.at, isRetry: arrival.attempts > 0),
            now: now
        )
        guard effect == .healthy else {
            // An attempt without a path does not count.
            if [.reconnect, .foreign, .renewed].contains(effect) { row.attempts -= 1 }
            row.due = settlement.due
            queues[queue].lanes[id]!.insert(row)
            return feed(.settled(lane: id, due: row.due, isDistrusted: false), queue)
        }
        delivered += 1
        if let next = queues[queue].scheduler.claimNext(lane: id, after: effect, now: now) {
            execute(next, queue) { .nextClaimed(lane: id, taken: $0, use: $1, due: $2) }
        } else {
            feed(.settled(lane: id, due: nil, isDistrusted: false), queue)
        }
    }
}

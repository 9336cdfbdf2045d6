internal import OfflineQueue

/// A simulation of a scheduler in virtual time, which records every violated guarantee of fairness. The slow origins
/// keep each slot for as long as possible, and the fast origins respond at once.
struct FairnessSimulation {
    /// The faults that a test injects into the scheduler. The checks must detect each of them.
    enum InjectedFault: CaseIterable {
        /// An origin may use all slots.
        case noOriginLimit
        /// No slot is reserved.
        case noReserve
        /// No attempt counts as slow.
        case noMemoryOfSlowness
        /// The scheduler is notified of the requests of half of the lanes 300 s late.
        case lateNews
    }

    private struct Lane {
        let info: Scheduler.LaneInfo
        let isSlow: Bool
        /// The due time of each waiting request.
        var waiting: [Moment] = []
        var slots = 0
        /// The number of claims of all lanes when this lane started to wait for its turn; `nil` if it does not wait.
        var waitsSince: Int?
        /// The number of the lane's last claim, counted over all lanes.
        var lastClaim = 0
    }

    private enum Event {
        case enqueue(Int64)
        case announce(Int64)
        case claimAnswer(Scheduler.Claim)
        case nextClaimAnswer(Scheduler.Claim)
        case outcome(Scheduler.Claim, began: Moment)
    }

    /// The time by which every slow origin has had a slow attempt. Guarantees are checked from then on.
    private static let calm = Moment.seconds(180)
    private static let end = Moment.seconds(600)

    private(set) var violations: Set<String> = []
    private var scheduler: Scheduler
    private var random: SplitMix64
    private let fault: InjectedFault?
    private let settings: Scheduler.Settings
    private var lanes: [Int64: Lane] = [:]
    /// The time since which a fast origin has had due requests but no attempt.
    private var neglected: [Origin: Moment] = [:]
    private var planned: [(at: Moment, what: Event)] = []
    private var now: Moment = .zero
    private var claims = 0

    init(seed: UInt64, fault: InjectedFault?) {
        var settings = Scheduler.Settings()
        settings.gateTimeout = .zero
        self.settings = settings
        if fault == .noOriginLimit { settings.inflightPerOrigin = settings.inflight }
        if fault == .noReserve { settings.reservedShare = 0 }
        if fault == .noMemoryOfSlowness { settings.slowAttempt = .seconds(3600) }
        scheduler = Scheduler(settings: settings, seed: seed)
        random = SplitMix64(seed: seed &+ 1)
        self.fault = fault
        for id in 0..<60 as Range<Int64> {
            let isSlow = id < 48
            // Forty slow origins have one lane each, another one has eight.
            let host = isSlow ? "slow\(min(id, 40))" : "quick\(id / 2)"
            let info = Scheduler.LaneInfo(id: id, host: host, mode: .parallel)
            lanes[id] = Lane(info: info, isSlow: isSlow)
        }
    }

    mutating func run() -> Set<String> {
        // Slow origins have so many requests that the scheduler does not forget any of them during the run.
        for lane in 0..<48 as Range<Int64> {
            for _ in 0..<12 { plan(.enqueue(lane), after: .zero ... .seconds(1)) }
        }
        for _ in 0..<200 {
            plan(.enqueue(Int64.random(in: 48..<60, using: &random)), after: Self.calm...Self.end)
        }
        advance(until: .seconds(36_000))
        if lanes.values.contains(where: { !$0.waiting.isEmpty || $0.slots > 0 }) {
            violations.insert("requests were never sent")
        }
        return violations
    }

    private mutating func plan(_ what: Event, after delay: ClosedRange<Duration>) {
        planned.append((now + random.uniform(delay), what))
    }
}

// MARK: - Time

extension FairnessSimulation {
    private mutating func advance(until end: Moment) {
        for _ in 0..<20_000 {
            let next = planned.indices.min { planned[$0].at < planned[$1].at }
            let wake = scheduler.nextWake(now: now)
            guard let moment = [wake, next.map { planned[$0].at }].compactMap({ $0 }).min(), moment <= end
            else {
                return
            }
            now = max(now, moment)
            if let next, planned[next].at == moment {
                handle(planned.remove(at: next).what)
            } else {
                feed(.wake)
            }
        }
        violations.insert("time does not pass")
    }

    private mutating func handle(_ what: Event) {
        switch what {
        case .enqueue(let lane):
            lanes[lane]!.waiting.append(now)
            noteWaiting(lane)
            let delay = fault == .lateNews && lane % 2 == 0 ? Duration.seconds(300) : .zero
            plan(.announce(lane), after: delay...delay)
        case .announce(let lane): feed(.rows(lanes[lane]!.info, due: now))
        case .claimAnswer(let claim): answer(claim) { .claimed(lane: claim.lane, taken: $0, due: $1) }
        case .nextClaimAnswer(let claim): answer(claim) { .nextClaimed(lane: claim.lane, taken: $0, due: $1) }
        case .outcome(let claim, let began): conclude(claim, began: began)
        }
    }

    private mutating func feed(_ event: Scheduler.Event) {
        for action in scheduler.handle(event, now: now) {
            guard case .claim(let claim) = action else { continue }
            begin(claim)
            plan(.claimAnswer(claim), after: .zero ... .milliseconds(10))
        }
    }
}

// MARK: - The store and the network

extension FairnessSimulation {
    private mutating func answer(_ claim: Scheduler.Claim, _ event: (Int, Moment?) -> Scheduler.Event) {
        let due = lanes[claim.lane]!.waiting.indices.filter { lanes[claim.lane]!.waiting[$0] <= now }
        let taken = due.prefix(claim.limit)
        for index in taken.reversed() { lanes[claim.lane]!.waiting.remove(at: index) }
        lanes[claim.lane]!.slots -= claim.limit - taken.count
        for _ in taken { plan(.outcome(claim, began: now), after: time(of: claim.lane)) }
        noteWaiting(claim.lane)
        let next = lanes[claim.lane]!.waiting.min()
        feed(event(taken.count, next))
    }

    private func time(of lane: Int64) -> ClosedRange<Duration> {
        lanes[lane]!.isSlow ? .seconds(10) ... .seconds(60) : .milliseconds(5) ... .milliseconds(200)
    }

    private mutating func conclude(_ claim: Scheduler.Claim, began: Moment) {
        let isDelivered = Int.random(in: 0..<3, using: &random) > 0 || !lanes[claim.lane]!.isSlow
        let settlement = scheduler.conclude(
            lane: claim.lane,
            epoch: claim.epoch,
            effect: isDelivered ? .healthy : .failure,
            failures: 1,
            course: AttemptCourse(duration: now - began),
            now: now
        )
        lanes[claim.lane]!.slots -= 1
        let due = isDelivered ? nil : settlement.due
        if let due { lanes[claim.lane]!.waiting.append(due) }
        noteWaiting(claim.lane)
        if let next = scheduler.claimNext(
            lane: claim.lane,
            after: isDelivered ? .healthy : .failure,
            now: now
        ) {
            begin(next)
            return plan(.nextClaimAnswer(next), after: .zero ... .milliseconds(10))
        }
        feed(.settled(lane: claim.lane, due: due, isDistrusted: false))
    }
}

// MARK: - The checks

extension FairnessSimulation {
    private func slots(of origin: Origin) -> Int {
        lanes.values.reduce(0) { $0 + ($1.info.origin == origin ? $1.slots : 0) }
    }

    private mutating func begin(_ claim: Scheduler.Claim) {
        claims += 1
        let origin = lanes[claim.lane]!.info.origin
        lanes[claim.lane]!.slots += claim.limit
        checkLimits(origin)
        checkTurns(claim.lane, origin)
        lanes[claim.lane]!.lastClaim = claims
        lanes[claim.lane]!.waitsSince = nil
        if let since = neglected.removeValue(forKey: origin), now - since > .seconds(1) {
            violations.insert("an origin waited for its first attempt")
        }
    }

    private mutating func checkLimits(_ origin: Origin) {
        if slots(of: origin) > settings.inflightPerOrigin {
            violations.insert("an origin has too many slots")
        }
        let held = Set(lanes.values.map(\.info.origin)).map(slots)
        let beyondFirst = held.reduce(0) { $0 + max(0, $1 - 1) }
        if beyondFirst > settings.inflight - settings.inflight / settings.reservedShare {
            violations.insert("the reserve is used for more than first attempts")
        }
    }

    /// Checks that a lane gets no second turn while another lane of its origin waits for a turn.
    private mutating func checkTurns(_ lane: Int64, _ origin: Origin) {
        let last = lanes[lane]!.lastClaim
        let isPassed = lanes.values.contains { other in
            other.info.origin == origin && other.info.id != lane && other.slots == 0
                && other.waitsSince.map { $0 < last } == true
        }
        if isPassed && last > 0 { violations.insert("a lane gets two turns while another one waits") }
    }

    /// Records that the lane waits for its turn, if it has a due request and is not closed.
    private mutating func noteWaiting(_ id: Int64) {
        let lane = lanes[id]!
        let isDue = lane.waiting.contains { $0 <= now }
        if isDue, lane.slots == 0, lane.waitsSince == nil,
            scheduler.waitReason(ofLane: id, now: now) != .laneClosed
        {
            lanes[id]!.waitsSince = claims
        }
        if !lane.isSlow, isDue, slots(of: lane.info.origin) == 0, neglected[lane.info.origin] == nil {
            neglected[lane.info.origin] = now
        }
    }
}

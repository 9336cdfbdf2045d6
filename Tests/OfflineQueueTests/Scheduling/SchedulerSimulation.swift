@testable internal import OfflineQueue

/// A simulation of a scheduler in virtual time, which records every violated guarantee. Requests, outcomes, gate states
/// and flushes are random. Arrays take the place of the store.
struct SchedulerSimulation {
    /// The faults that a test injects into the scheduler. The checks must detect each of them.
    enum InjectedFault: CaseIterable {
        case moreSlots
        case moreSlotsOfOrigin
        /// A `Retry-After` does not close the lane.
        case deafToServer
        /// The scheduler is not notified that a host is not reachable.
        case deafToGate
        /// The scheduler is never woken by a timer.
        case noTimers
        /// FIFO lanes are reported to the scheduler as parallel.
        case unordered
        /// Attempts over a lost path continue for 60 s.
        case noGrace
        /// Each change to reachable looks like another path.
        case cutsEveryFlap
        /// The first fast retry is delayed by 1 s.
        case slowReconnect
        /// One more endpoint is watched than is permitted.
        case moreWatches
        /// One more lane is in memory than is permitted.
        case moreLanes
        /// Lanes that the scheduler has ordered to load are not reported.
        case noLoads
    }

    private struct Row {
        let number: Int
        var due: Moment
        var failures = 0
        /// The start of the current attempt.
        var began: Moment = .zero
        var claim: Scheduler.Claim?
        /// The path of the current attempt; `nil` if no path was known.
        var route: UInt64?
    }

    private struct Lane {
        let info: Scheduler.LaneInfo
        /// The lane as reported to the scheduler, which differs from ``info`` for an injected fault.
        let told: Scheduler.LaneInfo
        var waiting: [Row] = []
        var sending: [Int: Row] = [:]
        var serverNotBefore: Moment = .zero
        var lastDelivered = -1
        /// The time of the last claim while the host was not reachable; `nil` if it has been reachable since, or if the
        /// last request has been delivered since.
        var lastLook: Moment?
        /// The number of fast retries since the last success or path change.
        var reconnects = 0
    }

    /// A lost path to a host, which attempts may still use.
    private struct Loss {
        let route: UInt64
        let at: Moment
    }

    private enum Event {
        case enqueue(Int64)
        case gate(String, GateState)
        case tell(String)
        case claimAnswer(Scheduler.Claim)
        case nextClaimAnswer(Scheduler.Claim)
        case outcome(Scheduler.Claim, row: Int)
        case flush
        case probe(Origin)
        case load([Int64])
    }

    private(set) var violations: Set<String> = []
    private var scheduler: Scheduler
    private var random: SplitMix64
    private let fault: InjectedFault?
    private var lanes: [Int64: Lane] = [:]
    /// The actual state of each host's gate.
    private var gates: [String: GateState] = [:]
    /// The last state of each watched gate that was reported to the scheduler.
    private var watched: [String: GateState?] = [:]
    /// The last state that a watch of a host has reported, and the time of its last change. `unknown` does not count if an
    /// earlier watch has reported another state.
    private var lastKnown: [String: (state: GateState, since: Moment)] = [:]
    /// The hosts whose watch has not yet reported whether the state is still the one of the watch before.
    private var resumed: Set<String> = []
    /// The last reported path of each host.
    private var ways: [String: UInt64] = [:]
    /// The lost paths that attempts may still use, by host.
    private var losses: [String: Loss] = [:]
    /// The attempts that the scheduler has ended, and whose outcomes are not reported yet.
    private var ended: [(lane: Int64, row: Int)] = []
    /// Whether the outcomes of ended attempts are being reported.
    private var isEnding = false
    private var planned: [(at: Moment, what: Event)] = []
    private var now: Moment = .zero
    private var nextRow = 0
    private var isCalm = false
    private var lastFlush: Moment?
    private let settings: Scheduler.Settings

    /// - Parameters:
    ///   - watches: The maximum number of watches. The requests go to five hosts.
    ///   - memory: The maximum number of lanes in memory. There are eight.
    init(seed: UInt64, fault: InjectedFault?, watches: Int = 4096, memory: Int = 20_000) {
        var settings = Scheduler.Settings()
        (settings.inflightPerLane, settings.inflightPerOrigin, settings.inflight) = (4, 6, 12)
        (settings.maximumWatches, settings.maximumLanes) = (watches, memory)
        if watches < 5 || memory < 8 {
            // With turns, too. They may not delay a lane by much.
            settings.turnsFromEndpoints = 0
            (settings.unansweredRate, settings.unansweredBurst) = (100, 100)
        }
        self.settings = settings
        var used = settings
        if fault == .moreLanes { used.maximumLanes = memory + 2 }
        if fault == .moreWatches { used.maximumWatches = watches + 1 }
        if fault == .moreSlotsOfOrigin { used.inflightPerOrigin = settings.inflightPerOrigin + 1 }
        if fault == .noGrace { used.lossGrace = .seconds(60) }
        if fault == .slowReconnect { used.reconnectDelay = .seconds(1) }
        if fault == .moreSlots { used.inflightPerLane = settings.inflightPerLane + 1 }
        scheduler = Scheduler(settings: used, seed: seed)
        random = SplitMix64(seed: seed &+ 1)
        self.fault = fault
        for id in 1...8 as ClosedRange<Int64> {
            let mode: LaneKey.Mode = id % 3 == 0 ? .fifo : .parallel
            let host = "host\(id / 2)"
            let told = fault == .unordered ? .parallel : mode
            lanes[id] = Lane(
                info: Scheduler.LaneInfo(id: id, host: host, mode: mode),
                told: Scheduler.LaneInfo(id: id, host: host, mode: told)
            )
        }
    }

    /// Simulates three hours of failures, and then a period without failures. After it, all requests must be delivered.
    mutating func run() -> Set<String> {
        for _ in 0..<400 {
            plan(.enqueue(Int64.random(in: 1...8, using: &random)), within: 10_800)
        }
        for _ in 0..<160 {
            let host = "host\(Int.random(in: 0...4, using: &random))"
            plan(.gate(host, randomGate()), within: 10_800)
            // In half of the cases, the path is lost only for a short time.
            if Bool.random(using: &random) { planFlap(of: host) }
        }
        for _ in 0..<2 { plan(.flush, within: 10_800) }
        let origins = lanes.keys.sorted().map { lanes[$0]!.info.origin }
        for _ in 0..<50 { plan(.probe(origins.randomElement(using: &random)!), within: 10_800) }
        advance(until: .seconds(10_800))
        isCalm = true
        // The longest possible wait: a `Retry-After` of a day with its random part, and then the maximum backoff for
        // each request.
        advance(until: .seconds(10_800 + 90_000 + 900 * 60))
        let left = lanes.values.reduce(0) { $0 + $1.waiting.count + $1.sending.count }
        if left > 0 { violations.insert("requests were never delivered") }
        return violations
    }

    private mutating func plan(_ what: Event, within seconds: Int64) {
        planned.append((random.uniform(now...now + .seconds(seconds)), what))
    }

    private mutating func planFlap(of host: String) {
        let start = random.uniform(.zero ... .seconds(10_800))
        let route = random.next() % 3
        planned.append((start, .gate(host, .reachable(generation: random.next() % 100, route: route))))
        planned.append((start + .seconds(5), .gate(host, .notReachable)))
        let end = start + .seconds(5) + random.uniform(.milliseconds(100) ... .seconds(4))
        let next = Bool.random(using: &random) ? route : random.next() % 3
        planned.append((end, .gate(host, .reachable(generation: 100 + random.next() % 100, route: next))))
    }

    private mutating func randomGate() -> GateState {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: .unknown
        case 1: .notReachable
        default: .reachable(generation: random.next() % 100, route: random.next() % 3)
        }
    }
}

// MARK: - Time

extension SchedulerSimulation {
    private mutating func advance(until end: Moment) {
        for _ in 0..<200_000 {
            let wake = fault == .noTimers ? nil : scheduler.nextWake(now: now)
            if let wake, wake <= now { violations.insert("a timer is set for a moment that has passed") }
            let next = planned.indices.min { planned[$0].at < planned[$1].at }
            let due = next.map { planned[$0].at }
            guard let moment = [wake, due].compactMap({ $0 }).min(), moment <= end else {
                now = end
                return
            }
            now = max(now, moment)
            if let next, due == moment {
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
            lanes[lane]!.waiting.append(Row(number: nextRow, due: now))
            nextRow += 1
            feed(.rows(info(of: lane), due: now))
        case .gate(let host, let state):
            gates[host] = state
            tell(host)
        case .tell(let host): tell(host)
        case .claimAnswer(let claim): answer(claim) { .claimed(lane: claim.lane, taken: $0, due: $1) }
        case .nextClaimAnswer(let claim): answer(claim) { .nextClaimed(lane: claim.lane, taken: $0, due: $1) }
        case .outcome(let claim, let row): conclude(claim, row)
        case .flush: flush()
        case .probe(let origin): feed(.probeSucceeded([origin]))
        case .load(let ids):
            guard fault != .noLoads else { return }
            feed(.loaded(ids.map { Scheduler.LaneRows(info(of: $0), due: due(ofLane: $0)) }, missing: []))
        }
    }

    private func info(of lane: Int64) -> Scheduler.LaneInfo {
        let (told, notBefore) = (lanes[lane]!.told, lanes[lane]!.serverNotBefore)
        return Scheduler.LaneInfo(id: lane, host: told.origin.host, mode: told.mode, notBefore: notBefore)
    }

    /// Returns when the next request of a lane is due; `nil` if none waits, or an earlier one is in flight in a FIFO lane.
    private func due(ofLane id: Int64) -> Moment? {
        let lane = lanes[id]!
        guard lane.told.mode == .fifo else { return lane.waiting.map(\.due).min() }
        return lane.sending.isEmpty ? lane.waiting.first?.due : nil
    }

    private mutating func feed(_ event: Scheduler.Event) {
        for action in scheduler.handle(event, now: now) {
            switch action {
            case .claim(let claim):
                check(claim)
                plan(.claimAnswer(claim), within: Int64.random(in: 0...1, using: &random))
            case .watch(let endpoint):
                watched[endpoint.host] = .some(nil)
                resumed.insert(endpoint.host)
                if watched.count > settings.maximumWatches {
                    violations.insert("too many hosts are watched")
                }
                plan(.tell(endpoint.host), within: 1)
            case .unwatch(let endpoint): endWatch(of: endpoint.host)
            case .load(let ids): plan(.load(ids), within: 1)
            case .dropConnections, .restartStalled, .probePortal, .interrupt, .release: break
            case .abort(let endpoint): end(endpoint.host, begunBefore: now, isAbort: true)
            case .endLost(let endpoint, let moment): end(endpoint.host, begunBefore: moment, isAbort: false)
            }
        }
        if scheduler.lanes.count > settings.maximumLanes { violations.insert("too many lanes are in memory") }
        checkLosses()
    }

    /// Ends attempts as the scheduler demands. In this simulation all attempts may be repeated, so an abort ends every
    /// attempt in flight.
    private mutating func end(_ host: String, begunBefore moment: Moment, isAbort: Bool) {
        for id in lanes.keys.sorted() where lanes[id]!.info.origin.host == host {
            for number in lanes[id]!.sending.keys.sorted() {
                let row = lanes[id]!.sending[number]!
                guard row.began < moment || isAbort else { continue }
                if isAbort, let route = row.route, route == ways[host] {
                    violations.insert("an attempt is aborted although its path was found again")
                }
                ended.append((id, row.number))
            }
        }
        guard !isEnding else { return }
        isEnding = true
        while let (id, number) = ended.popLast() { conclude(lane: id, number, .renewed) }
        isEnding = false
    }

    private mutating func checkLosses() {
        for (host, loss) in losses where now > loss.at + settings.lossGrace {
            let over = lanes.values.filter { $0.info.origin.host == host }.flatMap(\.sending.values)
                .filter { $0.route == loss.route && $0.began < loss.at }
            if !over.isEmpty { violations.insert("an attempt continues over a lost path") }
        }
    }

    private mutating func endWatch(of host: String) {
        watched[host] = nil
        let isInUse = lanes.values.contains { $0.info.origin.host == host && !$0.sending.isEmpty }
        if isInUse { violations.insert("the host of a request in flight is not watched any more") }
    }

    private mutating func tell(_ host: String) {
        guard let old = watched[host], let state = gates[host], old != state else { return }
        watched[host] = .some(state)
        recordFailedDependency(of: host, old, state)
        recordKnown(state, of: host)
        if fault == .cutsEveryFlap, case .reachable(let generation, _, _) = state {
            return feed(.gate(.https(host), .reachable(generation: generation)))
        }
        if fault != .deafToGate || state != .notReachable { feed(.gate(.https(host), state)) }
    }
}

extension SchedulerSimulation {
    private mutating func recordFailedDependency(of host: String, _ old: GateState?, _ new: GateState) {
        switch new {
        case .down:
            if case .reachable(_, let route?, _) = old, losses[host] == nil {
                losses[host] = Loss(route: route, at: now)
            }
        case .unknown: losses[host] = nil
        case .reachable(_, let route, _):
            // If the path is the same, the attempts continue. If it is another one, they are ended at once.
            losses[host] = nil
            ways[host] = route
            for id in lanes.keys where lanes[id]!.info.origin.host == host { lanes[id]!.lastLook = nil }
            // A watch that begins again resets a lane only if the host was not reachable before.
            if resumed.contains(host), let known = lastKnown[host], known.state != .notReachable { return }
            // The first known state does not reset a lane that has been tried.
            guard let old, old != .unknown else { return }
            for id in lanes.keys where lanes[id]!.info.origin.host == host { lanes[id]!.reconnects = 0 }
        }
    }

    /// Records a state that was reported. The time without a watch, and the time in which the state is unknown after it, do
    /// not end an outage.
    private mutating func recordKnown(_ state: GateState, of host: String) {
        if state == .unknown, resumed.contains(host), lastKnown[host] != nil { return }
        let isSameOutage = state == .notReachable && lastKnown[host]?.state == .notReachable
        if !isSameOutage { lastKnown[host] = (state, now) }
        resumed.remove(host)
    }
}

// MARK: - The store, the network, and the checks

extension SchedulerSimulation {
    private mutating func answer(_ claim: Scheduler.Claim, _ event: (Int, Moment?) -> Scheduler.Event) {
        var lane = lanes[claim.lane]!
        if claim.releasing != nil { for index in lane.waiting.indices { lane.waiting[index].due = now } }
        let keepsOrder = lane.told.mode == .fifo
        let due = lane.waiting.indices.filter { lane.waiting[$0].due <= now }
        let isBlocked = keepsOrder && !lane.sending.isEmpty
        let chosen = isBlocked ? [] : keepsOrder ? due.filter { $0 == 0 } : due
        let taken = chosen.prefix(claim.limit).map { lane.waiting[$0] }
        lane.waiting.removeAll { row in taken.contains { $0.number == row.number } }
        for var row in taken {
            row.began = now
            row.claim = claim
            let host = lane.info.origin.host
            if case .reachable?? = watched[host] { row.route = ways[host] } else { row.route = nil }
            lane.sending[row.number] = row
            plan(.outcome(claim, row: row.number), within: 20)
        }
        lanes[claim.lane] = lane
        if !taken.isEmpty { checkCounts(lane) }
        feed(event(taken.count, self.due(ofLane: claim.lane)))
    }

    private mutating func checkCounts(_ lane: Lane) {
        let limit = lane.info.mode == .fifo ? 1 : settings.inflightPerLane
        if lane.sending.count > limit { violations.insert("a lane has too many in flight") }
        let origins = Dictionary(grouping: lanes.values, by: \.info.origin)
        let sent = origins.values.map { $0.reduce(0) { $0 + $1.sending.count } }
        if sent.contains(where: { $0 > settings.inflightPerOrigin }) {
            violations.insert("an origin has too many in flight")
        }
        if sent.reduce(0, +) > settings.inflight { violations.insert("the queue has too many in flight") }
        let beyondFirst = sent.reduce(0) { $0 + max(0, $1 - 1) }
        if beyondFirst > settings.inflight - settings.inflight / settings.reservedShare {
            violations.insert("the reserve is used for more than first attempts")
        }
    }

    private mutating func check(_ claim: Scheduler.Claim) {
        let lane = lanes[claim.lane]!
        if now < lane.serverNotBefore { violations.insert("a lane that its server closed claims requests") }
        // After a flush, a lane ignores its gate until the gate changes or an attempt fails.
        if let lastFlush, now < lastFlush + settings.backoff.cap { return }
        let host = lane.info.origin.host
        guard let state = watched[host] else {
            violations.insert("a lane claims requests although its host is not watched")
            return
        }
        guard state == .notReachable, let known = lastKnown[host] else { return }
        defer { lanes[claim.lane]!.lastLook = now }
        // A lane that was not in memory does not know that another outage has begun in the meantime.
        let since = isMemoryLimited ? lane.lastLook : known.since
        if since.map({ now < $0 + settings.backoff.cap }) == true || claim.limit > 1 {
            violations.insert("a lane claims requests although its host is not reachable")
        }
    }

    private var isMemoryLimited: Bool { settings.maximumLanes < lanes.count }

    private mutating func conclude(_ claim: Scheduler.Claim, _ number: Int) {
        guard lanes[claim.lane]!.sending[number]?.claim == claim else { return }
        conclude(lane: claim.lane, number, outcome())
    }

    private mutating func conclude(lane id: Int64, _ number: Int, _ effect: LaneEffect) {
        guard var row = lanes[id]!.sending.removeValue(forKey: number), let claim = row.claim else { return }
        row.failures += 1
        let told = fault == .deafToServer && isClosing(effect) ? .failure : effect
        let settlement = scheduler.conclude(
            lane: claim.lane,
            epoch: claim.epoch,
            effect: told,
            failures: row.failures,
            now: now
        )
        if case .closeFor(let wait) = effect {
            let until = max(now + wait, settlement.laneNotBefore ?? .zero)
            lanes[claim.lane]!.serverNotBefore = max(lanes[claim.lane]!.serverNotBefore, until)
        }
        checkReconnect(claim.lane, effect, due: settlement.due)
        guard effect == .healthy else {
            row.due = min(settlement.due, now + settings.backoff.cap)
            // A retried request keeps its position.
            let place = lanes[claim.lane]!.waiting.firstIndex { $0.number > number }
            lanes[claim.lane]!.waiting.insert(row, at: place ?? lanes[claim.lane]!.waiting.endIndex)
            return feed(.settled(lane: claim.lane, due: row.due, isDistrusted: false))
        }
        if lanes[claim.lane]!.info.mode == .fifo {
            if number < lanes[claim.lane]!.lastDelivered { violations.insert("a FIFO lane lost its order") }
            lanes[claim.lane]!.lastDelivered = number
        }
        // The scheduler forgets a lane without requests.
        if lanes[id]!.waiting.isEmpty, lanes[id]!.sending.isEmpty { lanes[id]!.lastLook = nil }
        if let next = scheduler.claimNext(lane: claim.lane, after: effect, now: now) {
            check(next)
            return plan(.nextClaimAnswer(next), within: Int64.random(in: 0...1, using: &random))
        }
        feed(.settled(lane: claim.lane, due: nil, isDistrusted: false))
    }

    /// Checks that fast retries are due within 50, 100, 200, … ms, unless the lane was closed before.
    private mutating func checkReconnect(_ id: Int64, _ effect: LaneEffect, due: Moment) {
        guard effect == .reconnect else { return lanes[id]!.reconnects = effect == .healthy ? 0 : 20 }
        let longest = Duration.milliseconds(50) * (1 << min(lanes[id]!.reconnects, 20))
        if due > now + longest { violations.insert("a failure to connect is not retried fast") }
        lanes[id]!.reconnects += 1
    }

    private func isClosing(_ effect: LaneEffect) -> Bool {
        if case .closeFor = effect { true } else { false }
    }

    private mutating func outcome() -> LaneEffect {
        guard !isCalm else { return .healthy }
        return switch Int.random(in: 0..<10, using: &random) {
        case 0...3: .healthy
        case 4...5: .failure
        case 6...7: .close
        case 8: Bool.random(using: &random) ? .none : .reconnect
        default: .closeFor(.seconds(Int64.random(in: 0...3600, using: &random)))
        }
    }

    private mutating func flush() {
        lastFlush = now
        for id in lanes.keys { lanes[id]!.serverNotBefore = .zero }
        feed(.flush(.all))
        let busy = lanes.keys.sorted().filter { due(ofLane: $0) != nil }
        feed(.lanes(busy.map { Scheduler.LaneRows(info(of: $0), due: due(ofLane: $0), flushedAt: now) }))
    }
}

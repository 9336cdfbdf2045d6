@testable internal import OfflineQueue

/// A year in which the link and the servers fail again and again. It checks the attempts that the queue makes.
struct YearOfOutages: SimulatedNetwork {
    /// The trouble that a server can have.
    enum Trouble: CaseIterable {
        /// A third of the requests fail.
        case errors
        /// Half of the requests are rejected, with or without `Retry-After`.
        case overload
        /// The server cannot be reached.
        case dead
        /// A request takes up to a minute.
        case slow
    }

    struct Period<Value> {
        let start: Moment
        let end: Moment
        let value: Value
    }

    /// What was sent since the last change of the link.
    private struct Phase {
        var inflight: [Int64: Int] = [:]
        var canaryAt: [Int64: Moment] = [:]
        var lastTry: [Int64: Moment] = [:]
        var successes: [Int64: Int] = [:]
    }

    private enum Kind { case first, retry, exempt }

    /// The lanes whose servers never have trouble.
    static let calmLanes: Set<Int64> = [7, 8]
    private static let cap = Backoff.defaultCap

    private(set) var violations: Set<String> = []
    private(set) var attempts = 0
    /// The time of each attempt to a server without trouble.
    private(set) var calmArrivals: Set<Moment> = []
    private var random: SplitMix64
    /// The outages that are not over, in order.
    private var outages: [Period<Void>]
    private var troubles: [Int64: [Period<Trouble>]]
    private var isUp = true
    private var changedAt: Moment = .zero
    private var phase = Phase()
    private var inflight: [Int64: Int] = [:]
    private var recent: [Int64: [(at: Moment, kind: Kind)]] = [:]
    private var lastInOrder: [Int64: Int] = [:]

    init(seed: UInt64, outages: [Period<Void>], troubles: [Int64: [Period<Trouble>]]) {
        random = SplitMix64(seed: seed)
        self.outages = outages.reversed()
        self.troubles = troubles.mapValues { $0.reversed() }
    }

    mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
        attempts += 1
        follow(arrival.at)
        check(arrival)
        if Self.calmLanes.contains(arrival.lane.id) { calmArrivals.insert(arrival.at) }
        guard isUp else { return (.reconnect, .seconds(3)) }
        return outcome(of: arrival)
    }

    mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
        follow(now)
        let lane = arrival.lane.id
        inflight[lane, default: 0] -= 1
        if arrival.at >= changedAt { phase.inflight[lane, default: 0] -= 1 }
        guard effect == .healthy else { return }
        phase.successes[lane, default: 0] += 1
        // A retry that succeeds does not count.
        if let index = recent[lane]?.firstIndex(where: { $0.at == arrival.at && $0.kind == .retry }) {
            recent[lane]!.remove(at: index)
        }
        guard arrival.lane.mode == .fifo else { return }
        if let last = lastInOrder[lane], last > arrival.row {
            violations.insert("a FIFO lane lost its order")
        }
        lastInOrder[lane] = arrival.row
    }

    /// Follows the state of the link.
    private mutating func follow(_ now: Moment) {
        while let next = outages.last, now >= (isUp ? next.start : next.end) {
            changedAt = isUp ? next.start : next.end
            if !isUp { outages.removeLast() }
            isUp.toggle()
            phase = Phase()
        }
    }

    private mutating func outcome(of arrival: FleetArrival) -> (LaneEffect, Duration) {
        let lane = arrival.lane.id
        while let period = troubles[lane]?.last, period.end <= arrival.at { troubles[lane]!.removeLast() }
        let quick = random.uniform(.milliseconds(20) ... .milliseconds(200))
        guard let period = troubles[lane]?.last, period.start <= arrival.at else { return (.healthy, quick) }
        let dice = Int.random(in: 0..<12, using: &random)
        switch period.value {
        case .errors: return (dice < 9 ? .failure : .healthy, quick)
        case .overload where dice < 3: return (.closeFor(.seconds(Int64(dice) * 60 + 10)), quick)
        case .overload: return (dice < 6 ? .close : .healthy, quick)
        case .dead: return (.close, .seconds(1))
        case .slow: return (.healthy, random.uniform(.seconds(10) ... .seconds(60)))
        }
    }
}

// MARK: - Checks

extension YearOfOutages {
    private mutating func check(_ arrival: FleetArrival) {
        let lane = arrival.lane.id
        if isUp { checkRamp(arrival) } else { checkOffline(arrival) }
        inflight[lane, default: 0] += 1
        phase.inflight[lane, default: 0] += 1
        if inflight[lane]! > (arrival.lane.mode == .fifo ? 1 : 8) {
            violations.insert("a lane has too many in flight")
        }
        if inflight.values.reduce(0, +) > 32 { violations.insert("the queue has too many in flight") }
        checkBudget(arrival)
    }

    private mutating func checkRamp(_ arrival: FleetArrival) {
        let lane = arrival.lane.id
        // Before the first outage there is no ramp.
        guard changedAt > .zero, let own = phase.inflight[lane], own > 0 else {
            phase.canaryAt[lane] = phase.canaryAt[lane] ?? arrival.at
            return
        }
        if phase.successes[lane] == nil, arrival.at < phase.canaryAt[lane]! + .seconds(20) {
            violations.insert("a lane sends more than its canary")
        }
        guard phase.successes.values.reduce(0, +) < 4, arrival.at < changedAt + .seconds(30) else { return }
        // Lanes that have responded, and the others, have separate limits.
        let hasResponded = phase.successes[lane] != nil
        let peers = phase.inflight.filter { (phase.successes[$0.key] != nil) == hasResponded }.values
        let charged = peers.reduce(0) { $0 + (hasResponded ? $1 : max(0, $1 - 1)) }
        if charged >= (hasResponded ? 4 : 3) { violations.insert("the ramp starts with more than 4") }
    }

    private mutating func checkOffline(_ arrival: FleetArrival) {
        let last = phase.lastTry.updateValue(arrival.at, forKey: arrival.lane.id) ?? changedAt
        if arrival.at < last + Self.cap { violations.insert("an unreachable host is tried too often") }
    }

    /// Checks the retries of the last 9 s, because the budget counts whole seconds.
    private mutating func checkBudget(_ arrival: FleetArrival) {
        let (lane, now) = (arrival.lane.id, arrival.at)
        let kind: Kind = arrival.attempts == 0 ? .first : arrival.claim.retries == nil ? .exempt : .retry
        var log = recent[lane] ?? []
        log.removeAll { $0.at <= now - .seconds(11) }
        log.append((now, kind))
        let firstAttempts = log.count { $0.kind == .first }
        let retries = log.count { $0.kind == .retry && $0.at > now - .seconds(9) }
        if Double(retries) > 0.2 * Double(firstAttempts) + 10 {
            violations.insert("there are too many retries")
        }
        recent[lane] = log
    }
}

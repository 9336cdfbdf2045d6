@testable internal import OfflineQueue

/// A link that fails, and that a captive portal intercepts for some time: often directly after an outage, sometimes in
/// between. It checks the attempts that the queue makes.
struct PortalSimulation: SimulatedNetwork {
    struct Period: Hashable {
        let start: Moment
        let end: Moment
    }

    /// The lanes over plain HTTP.
    static let plain: ClosedRange<Int64> = 1...5
    /// The lanes over HTTPS, which the portal blocks.
    static let secure: ClosedRange<Int64> = 6...8

    private(set) var violations: Set<String> = []
    /// The number of times that a portal ended.
    private(set) var portalsSeen = 0
    private var random: SplitMix64
    private var outages: [Period]
    private var portals: [Period]
    private var isUp = true
    private var isPortal = false
    /// The last time at which the link returned or a portal ended.
    private var changedAt: Moment = .zero
    /// The plain lanes to which the current or last portal has responded, or which were probed through it.
    private var affected: Set<Int64> = []
    private var inflight: [Int64: Int] = [:]
    private var successes: [Int64: Int] = [:]
    private var canaryAt: [Int64: Moment] = [:]

    init(seed: UInt64, outages: [Period], portals: [Period]) {
        random = SplitMix64(seed: seed)
        self.outages = outages.reversed()
        self.portals = portals.reversed()
    }

    mutating func probe(_ host: String, now: Moment) -> (finding: PortalFinding, after: Duration) {
        follow(now)
        guard isUp else { return (.failed, .seconds(10)) }
        guard isPortal else { return (.clear, .milliseconds(30)) }
        affected.insert(Int64(host.dropFirst())!)
        return (.captive(page: nil), .milliseconds(30))
    }

    mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
        follow(arrival.at)
        let lane = arrival.lane.id
        let isPlain = Self.plain.contains(lane)
        guard isUp else { return (.reconnect, .seconds(3)) }
        if isPlain { check(lane, arrival.at) }
        inflight[lane, default: 0] += 1
        let quick = random.uniform(.milliseconds(20) ... .milliseconds(200))
        guard isPortal else { return (.healthy, quick) }
        if !isPlain { return (.close, quick) }
        return (.foreign, .zero)
    }

    mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
        follow(now)
        let lane = arrival.lane.id
        if effect == .foreign { affected.insert(lane) }
        guard arrival.at >= changedAt else { return }
        inflight[lane, default: 0] -= effect == .renewed ? 0 : 1
        if effect == .healthy { successes[lane, default: 0] += 1 }
    }

    private mutating func check(_ lane: Int64, _ now: Moment) {
        if isPortal {
            if affected.contains(lane) { violations.insert("a request is sent to a portal that was seen") }
            return
        }
        guard affected.contains(lane) else { return }
        guard let canary = canaryAt[lane], inflight[lane, default: 0] > 0 else {
            canaryAt[lane] = canaryAt[lane] ?? now
            return
        }
        if successes[lane] == nil, now < canary + .seconds(20) {
            violations.insert("a lane sends more than its canary after a portal")
        }
        guard successes.values.reduce(0, +) < 4, now < canaryAt.values.min()! + .seconds(30) else { return }
        let responding = inflight.filter { successes[$0.key] != nil && affected.contains($0.key) }.values
        if responding.reduce(0, +) >= 4 {
            violations.insert("the ramp after a portal starts with more than 4")
        }
    }

    /// Follows the state of the link and the portal.
    private mutating func follow(_ now: Moment) {
        while let next = nextChange, next <= now {
            if let outage = outages.last, (isUp ? outage.start : outage.end) == next {
                if !isUp { outages.removeLast() }
                isUp.toggle()
                affected = []
            } else {
                if isPortal { portals.removeLast() } else { affected = [] }
                isPortal.toggle()
                if !isPortal { portalsSeen += 1 }
            }
            changedAt = next
            (inflight, successes, canaryAt) = ([:], [:], [:])
        }
    }

    private var nextChange: Moment? {
        let link = outages.last.map { isUp ? $0.start : $0.end }
        let portal = portals.last.map { isPortal ? $0.end : $0.start }
        return [link, portal].compactMap(\.self).min()
    }
}

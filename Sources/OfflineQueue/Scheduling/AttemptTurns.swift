/// The turns of attempts to hosts that do not answer. It limits their rate in all lanes together.
///
/// Such an attempt looks up the host's name and usually fails. While thousands of such hosts wait, the backoff of each
/// lane alone would let the queue send many DNS queries per second without end.
///
/// Lanes that wait for a turn are in groups that take turns, and so do the lanes of a group. A user with many such hosts
/// therefore does not delay another user, and hosts that never answered do not delay those that did.
struct AttemptTurns: Sendable {
    /// A group of lanes.
    struct Group: Hashable, Sendable {
        /// The user who has submitted the requests of the lanes.
        let submitter: UInt32?
        /// Whether the origins of the lanes have responded before, and not only long ago; see ``OriginStanding``.
        let hasResponded: Bool
    }

    /// The number of waiting lanes of each user that stay in memory, so that turns need not wait for loads.
    let keptLanes: Int
    private var limiter: RateLimiter
    private var line = GroupedQueue<Group, Int64>()
    /// The lanes that stay in memory until their turn, by user: the first ones that joined the line.
    private var kept: [UInt32?: Set<Int64>] = [:]

    /// - Parameters:
    ///   - perSecond: The maximum number of turns per second.
    ///   - burst: The number of turns that may be taken at once after a pause.
    ///   - keptLanes: The number of waiting lanes of each user that stay in memory.
    init(perSecond: Double, burst: Int, keptLanes: Int = 32) {
        self.keptLanes = keptLanes
        limiter = RateLimiter(perSecond: perSecond, burst: burst)
    }

    /// The number of lanes that wait for a turn.
    var count: Int { line.count }

    /// The time from which the next lane may take its turn; `nil` if no lane waits.
    var opensAt: Moment? { line.isEmpty ? nil : limiter.opensAt }

    /// Returns whether a lane waits for a turn.
    func contains(_ lane: Int64) -> Bool { line.contains(lane) }

    /// Makes a lane wait for a turn. A lane that already waits in the same group keeps its place.
    mutating func add(_ lane: Int64, to group: Group) {
        line.add(lane, to: group)
        if keptCount(of: group.submitter) < keptLanes { kept[group.submitter, default: []].insert(lane) }
    }

    /// Removes a lane, which then waits for no turn.
    mutating func remove(_ lane: Int64) {
        if let group = line.group(of: lane) { release(lane, of: group) }
        line.remove(lane)
    }

    /// Returns whether a lane stays in memory while it waits for its turn.
    func keeps(_ lane: Int64) -> Bool {
        line.group(of: lane).map { kept[$0.submitter]?.contains(lane) == true } ?? false
    }

    /// Returns the number of lanes of a user that stay in memory while they wait for their turns.
    func keptCount(of submitter: UInt32?) -> Int { kept[submitter]?.count ?? 0 }

    private mutating func release(_ lane: Int64, of group: Group) {
        kept[group.submitter]?.remove(lane)
        if kept[group.submitter]?.isEmpty == true { kept[group.submitter] = nil }
    }

    /// Removes and returns the lane whose turn it is; `nil` if none waits or the rate permits no attempt now.
    mutating func takeNext(now: Moment) -> Int64? {
        guard limiter.opensAt <= now, let (lane, group) = line.removeFirst() else { return nil }
        release(lane, of: group)
        limiter.take(now: now)
        // A turn is not given back, even if the claim finds no request.
        limiter.settle(unused: 0, of: 1, taken: now)
        return lane
    }
}

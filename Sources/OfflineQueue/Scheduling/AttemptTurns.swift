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

    private var limiter: RateLimiter
    private var line = GroupedQueue<Group, Int64>()

    /// - Parameters:
    ///   - perSecond: The maximum number of turns per second.
    ///   - burst: The number of turns that may be taken at once after a pause.
    init(perSecond: Double, burst: Int) {
        limiter = RateLimiter(perSecond: perSecond, burst: burst)
    }

    /// The number of lanes that wait for a turn.
    var count: Int { line.count }

    /// The time from which the next lane may take its turn; `nil` if no lane waits.
    var opensAt: Moment? { line.isEmpty ? nil : limiter.opensAt }

    /// Returns whether a lane waits for a turn.
    func contains(_ lane: Int64) -> Bool { line.contains(lane) }

    /// Makes a lane wait for a turn. A lane that already waits in the same group keeps its place.
    mutating func add(_ lane: Int64, to group: Group) { line.add(lane, to: group) }

    /// Removes a lane, which then waits for no turn.
    mutating func remove(_ lane: Int64) { line.remove(lane) }

    /// Removes and returns the lane whose turn it is; `nil` if none waits or the rate permits no attempt now.
    mutating func takeNext(now: Moment) -> Int64? {
        guard limiter.opensAt <= now, let lane = line.removeFirst()?.key else { return nil }
        limiter.take(now: now)
        // A turn is not given back, even if the claim finds no request.
        limiter.settle(unused: 0, of: 1, taken: now)
        return lane
    }
}

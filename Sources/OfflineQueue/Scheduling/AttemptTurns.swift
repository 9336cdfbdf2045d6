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

/// The watches of endpoints, whose number is limited, and the lanes that wait for one.
///
/// A watch uses memory here and in the path monitor, and DNS queries if the host is a name. While requests to a million
/// hosts wait, only the hosts that can be tried next are watched.
///
/// - A watch that is not used for a while yields if another lane waits for a watch. The one that was not used for longest
///   is first.
/// - Lanes that wait are in groups that take turns, and so do the lanes of a group.
/// - A user has only a share of the watches (``SharedLimit``), because a watch in use does not yield.
struct WatchTurns: Sendable {
    /// A group of lanes.
    struct Group: Hashable, Sendable {
        /// What a watch is needed for. Lanes with one purpose do not wait behind many lanes with another one.
        enum Purpose: Hashable, Sendable {
            /// An attempt that a flush or a release demands, or for which the lane has its turn (``AttemptTurns``).
            case demanded
            /// An attempt, unless there is no path.
            case attempt
            /// To find out whether there is a path again.
            case look
        }

        /// The user of the lanes.
        let submitter: UInt32?
        let purpose: Purpose
    }

    private let limit: SharedLimit
    private var line = GroupedQueue<Group, Int64>()
    /// The endpoints that are watched.
    var use = SharedUse<Endpoint>()

    init(limit: Int) {
        self.limit = SharedLimit(limit)
    }

    /// Whether no lane waits for a watch.
    var isEmpty: Bool { line.isEmpty }

    /// Returns whether a lane waits for a watch.
    func contains(_ lane: Int64) -> Bool { line.contains(lane) }

    /// Makes a lane wait for a watch. A lane that already waits in the same group keeps its place.
    mutating func add(_ lane: Int64, to group: Group) { line.add(lane, to: group) }

    /// Removes a lane, which then waits for no watch.
    mutating func remove(_ lane: Int64) { line.remove(lane) }

    /// Returns whether a user may have another watch without one that yields.
    func hasRoom(for submitter: UInt32?) -> Bool { use.hasRoom(for: submitter, in: limit) }

    /// Removes and returns the next lane that may have a watch, and the endpoint whose watch must end before; `nil` if no
    /// lane may have one now.
    mutating func takeNext(now: Moment) -> (lane: Int64, yielding: Endpoint?)? {
        let ready = Set(line.groups.map(\.submitter)).filter { use.mayBegin(for: $0, in: limit, now: now) }
        guard let (lane, group) = line.removeFirst(where: { ready.contains($0.submitter) }) else {
            return nil
        }
        return (lane, use.takeYielding(to: group.submitter, in: limit, now: now))
    }

    /// The next time at which a watch may yield to a waiting lane; `nil` if there is none.
    var nextYield: Moment? {
        line.groups.compactMap { use.firstIdle(for: $0.submitter, in: limit)?.at }.min()
    }
}

// Limits how often the queue tries hosts that do not answer, while it has requests to many hosts.

extension Scheduler {
    /// Makes a lane that may try a request wait for a slot, or first for its turn if its host does not answer.
    mutating func joinInTurn(_ lane: SchedulerLane) {
        watches.remove(lane.id)
        guard needsTurn(lane) else {
            turns.remove(lane.id)
            return join(lane)
        }
        slots.leave(lane.id, of: lane.origin)
        turns.add(lane.id, to: turnGroup(of: lane))
    }

    /// Makes a lane that may try no request wait neither for a slot nor for a turn nor for a watch. While it waits for the
    /// first state of a watch, it keeps its turn, or its place in the line for one.
    mutating func leave(_ lane: SchedulerLane) {
        slots.leave(lane.id, of: lane.origin)
        watches.remove(lane.id)
        if let gate = gates[lane.endpoint], gate.watch != nil, gate.state == nil { return }
        turns.remove(lane.id)
        lanes[lane.id]?.hasTurn = false
    }

    /// Lets the lanes whose turn it is wait for a slot.
    mutating func giveTurns(now: Moment) {
        while let id = turns.takeNext(now: now) {
            lanes[id]?.hasTurn = true
            schedule(id, now: now)
        }
    }

    /// The time at which the next lane may take its turn; `nil` if no lane waits for one, or if one may take it at the
    /// next event.
    func nextTurn(now: Moment) -> Moment? { turns.opensAt.flatMap { $0 > now ? $0 : nil } }

    /// Returns whether the lane needs a turn before an attempt.
    ///
    /// A path change, a flush, a release and a response of the origin to another lane prove or demand that the host is
    /// tried now. After each of them, the lane needs no turn.
    func needsTurn(_ lane: SchedulerLane) -> Bool {
        let hasMany = gates.count > settings.turnsFromEndpoints || !unloaded.isEmpty
        guard hasMany, !lane.hasTurn, !lane.isForced, !lane.isRequested
        else { return false }
        return lane.isUnanswered || seemsDown(lane.endpoint) || hasReconnectedInVain(lane)
    }

    /// Returns whether the fast retries after an outage are over and had no success.
    private func hasReconnectedInVain(_ lane: SchedulerLane) -> Bool {
        reconnectDelay(after: lane.reconnects) > settings.reconnectTime
    }

    func turnGroup(of lane: SchedulerLane) -> AttemptTurns.Group {
        let hasResponded =
            switch slots.standing(of: lane.origin) {
            case .new, .silent: false
            case .prompt, .slow, .doubtful: true
            }
        return AttemptTurns.Group(submitter: lane.key.submitter, hasResponded: hasResponded)
    }
}

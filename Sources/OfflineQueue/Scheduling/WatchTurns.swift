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
    /// The number of watches of each user. A watch is counted for the user whose lane was the first to need it.
    private var counts: [UInt32?: Int] = [:]
    /// The number of all watches.
    private var count = 0
    /// The times from which endpoints that are not in use may yield, by the user whose share contains them.
    private var idle: [UInt32?: Timetable<Endpoint>] = [:]

    init(limit: Int) {
        self.limit = SharedLimit(limit)
    }

    /// Whether no lane waits for a watch.
    var isEmpty: Bool { line.isEmpty }

    /// Makes a lane wait for a watch. A lane that already waits in the same group keeps its place.
    mutating func add(_ lane: Int64, to group: Group) { line.add(lane, to: group) }

    /// Removes a lane, which then waits for no watch.
    mutating func remove(_ lane: Int64) { line.remove(lane) }

    /// Removes and returns the next lane that may have a watch, and the endpoint whose watch must end before; `nil` if no
    /// lane may have one now.
    mutating func takeNext(now: Moment) -> (lane: Int64, yielding: Endpoint?)? {
        let ready = Set(line.groups.map(\.submitter)).filter { mayWatch($0, now: now) }
        guard let (lane, group) = line.removeFirst(where: { ready.contains($0.submitter) }) else {
            return nil
        }
        return (lane, removeYielding(to: group.submitter, now: now))
    }

    private func mayWatch(_ submitter: UInt32?, now: Moment) -> Bool {
        if hasRoom(for: submitter) { return true }
        return firstIdle(for: submitter).map { $0.at <= now } ?? false
    }

    private mutating func removeYielding(to submitter: UInt32?, now: Moment) -> Endpoint? {
        // Not `firstIdle(for: submitter)?.owner`: the watches of the service itself have no owner.
        guard !hasRoom(for: submitter), let first = firstIdle(for: submitter) else { return nil }
        return idle[first.owner]?.removeFirst(until: now)
    }

    /// The next time at which a watch may yield to a waiting lane; `nil` if there is none.
    var nextYield: Moment? { line.groups.compactMap { firstIdle(for: $0.submitter)?.at }.min() }
}

// MARK: - Watches

extension WatchTurns {
    /// Returns whether a user may have another watch without one that yields.
    func hasRoom(for submitter: UInt32?) -> Bool { fullScope(for: submitter) == nil }

    mutating func began(for submitter: UInt32?) {
        counts[submitter, default: 0] += 1
        count += 1
    }

    mutating func ended(_ endpoint: Endpoint, for submitter: UInt32?) {
        setYield(endpoint, for: submitter, from: nil)
        count -= 1
        counts[submitter]! -= 1
        if counts[submitter] == 0 { counts[submitter] = nil }
    }

    func mayYield(_ endpoint: Endpoint, for submitter: UInt32?) -> Bool {
        idle[submitter]?.contains(endpoint) == true
    }

    /// Sets the time from which a watch may yield.
    ///
    /// - Parameter moment: The time; `nil` for a watch in use.
    mutating func setYield(_ endpoint: Endpoint, for submitter: UInt32?, from moment: Moment?) {
        idle[submitter, default: Timetable()].set(endpoint, to: moment)
        if idle[submitter]?.first == nil { idle[submitter] = nil }
    }

    /// Returns the narrowest limit that is reached for a user; `nil` if there is room.
    private func fullScope(for submitter: UInt32?) -> SharedLimit.Scope? {
        let scopes: [SharedLimit.Scope] = submitter == nil ? [.all] : [.user, .users, .all]
        return scopes.first { use(of: $0, submitter) >= limit.value(for: $0) }
    }

    private func use(of scope: SharedLimit.Scope, _ submitter: UInt32?) -> Int {
        switch scope {
        case .user: counts[submitter, default: 0]
        case .users: count - counts[nil, default: 0]
        case .all: count
        }
    }

    /// Returns when the first watch may yield to a user, and the user whose share contains it; `nil` if none may, or if
    /// there is room. While the user has their share, only their own watches yield.
    private func firstIdle(for submitter: UInt32?) -> (at: Moment, owner: UInt32?)? {
        guard let scope = fullScope(for: submitter) else { return nil }
        // Of equal times, the smallest id is first, so that a run can be replayed.
        func number(_ owner: UInt32?) -> Int64 { owner.map { Int64($0) } ?? -1 }
        return idle.compactMap { owner, times in times.first.map { (at: $0, owner: owner) } }
            .filter { Self.isCounted($0.owner, in: scope, of: submitter) }
            .min { ($0.at, number($0.owner)) < ($1.at, number($1.owner)) }
    }

    private static func isCounted(_ owner: UInt32?, in scope: SharedLimit.Scope, of submitter: UInt32?)
        -> Bool
    {
        switch scope {
        case .user: owner == submitter
        case .users: owner != nil
        case .all: true
        }
    }
}

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

internal import HeapModule
internal import NetworkReachability

/// The lanes that are only in the store, and the order in which they are loaded: the ones whose time came first, by user
/// and purpose.
///
/// A lane in memory takes about 3 KB with the state of its host and origin, so a million hosts would need gigabytes.
/// Here, a lane takes about 75 bytes, with the tables (`scripts/bench lane-memory`).
struct UnloadedLanes: Sendable {
    /// A group of lanes. The groups take turns.
    struct Group: Hashable, Sendable {
        /// What a lane is needed for. Lanes with one purpose do not wait behind many lanes with another one.
        enum Purpose: Hashable, Sendable {
            /// An attempt that a flush or a release demands.
            case demanded
            /// An attempt to a host that has responded.
            case known
            /// An attempt to another host.
            case attempt
            /// An attempt to a host that did not answer. It needs a turn (``AttemptTurns/Group``).
            case retry(hasResponded: Bool)
            /// To find out whether there is a path again.
            case look

            var isRetry: Bool { if case .retry = self { true } else { false } }
        }

        let submitter: UInt32?
        let purpose: Purpose
    }

    private struct Entry: Comparable, Sendable {
        let seconds: UInt32
        let id: Int64

        static func < (left: Entry, right: Entry) -> Bool {
            (left.seconds, left.id) < (right.seconds, right.id)
        }
    }

    /// The lanes of a group by their times. An entry of a lane that has left the group or has another time now is removed
    /// when it is the first one, or when there are many.
    private struct Line: Sendable {
        var entries = Heap<Entry>()
        /// The number of lanes.
        var count = 0
    }

    private var lanes: [Int64: UnloadedLane] = [:]
    private var lines: [Group: Line] = [:]
    private var order = WeightedQueue<Group>()
    /// The reasons of outages.
    private var reasons: [PathStatus.Reason] = []
    /// The number of lanes of each user that are loaded for a retry.
    private var loadingRetries: [UInt32?: Int] = [:]

    var isEmpty: Bool { lanes.isEmpty }
    var count: Int { lanes.count }

    subscript(id: Int64) -> UnloadedLane? { lanes[id] }

    /// The groups that have lanes, with the time of the first one of each.
    var groups: some Collection<(key: Group, value: Moment)> {
        lines.lazy.map { (key: $0.key, value: .seconds(Int64($0.value.entries.min!.seconds))) }
    }

    /// Returns whether a lane of a user waits to be loaded at the given time, other than for a retry.
    func isAwaited(for submitter: UInt32?, now: Moment) -> Bool {
        groups.contains { $0.key.submitter == submitter && !$0.key.purpose.isRetry && $0.value <= now }
    }

    func retriesLoading(for submitter: UInt32?) -> Int { loadingRetries[submitter] ?? 0 }

    /// Adds or replaces a lane.
    mutating func set(_ id: Int64, _ lane: UnloadedLane) {
        let old = lanes.updateValue(lane, forKey: id)
        if lane.isLoading { return }
        if let old, !old.isLoading {
            guard old.group != lane.group || old.seconds != lane.seconds else { return }
            leave(old)
        }
        guard lane.seconds < .max else { return }
        if lines[lane.group] == nil { order.append(lane.group) }
        lines[lane.group, default: Line()].entries.insert(Entry(seconds: lane.seconds, id: id))
        lines[lane.group]!.count += 1
    }

    @discardableResult
    mutating func remove(_ id: Int64) -> UnloadedLane? {
        guard let lane = lanes.removeValue(forKey: id) else { return nil }
        if !lane.isLoading {
            leave(lane)
        } else if lane.properties.contains(.isLoadingForTurn) {
            loadingRetries[lane.submitter]! -= 1
            if loadingRetries[lane.submitter] == 0 { loadingRetries[lane.submitter] = nil }
        }
        return lane
    }

    /// Returns the next lane of the first of the given groups, and marks it as loading. The groups must have lanes.
    mutating func takeNext(from ready: Set<Group>) -> (id: Int64, group: Group)? {
        for _ in 0..<lines.count {
            guard let group = order.removeFirst() else { return nil }
            order.append(group)
            guard ready.contains(group), let id = lines[group]?.entries.min?.id else { continue }
            let lane = lanes[id]!
            lanes[id]!.properties.insert(.isLoading)
            leave(lane)
            if group.purpose.isRetry {
                lanes[id]!.properties.insert(.isLoadingForTurn)
                loadingRetries[group.submitter, default: 0] += 1
            }
            return (id, group)
        }
        return nil
    }

    /// Updates the line that a lane has left.
    private mutating func leave(_ lane: UnloadedLane) {
        guard lane.seconds < .max else { return }
        let group = lane.group
        lines[group]!.count -= 1
        guard lines[group]!.count > 0 else {
            lines[group] = nil
            return order.remove(group)
        }
        while let first = lines[group]!.entries.min, !isCurrent(first, in: group) {
            lines[group]!.entries.removeMin()
        }
        let entries = lines[group]!.entries
        guard entries.count > 2 * lines[group]!.count + 64 else { return }
        var known: Set<Int64> = []
        let current = entries.unordered.filter { isCurrent($0, in: group) && known.insert($0.id).inserted }
        lines[group]!.entries = Heap(current)
    }

    private func isCurrent(_ entry: Entry, in group: Group) -> Bool {
        lanes[entry.id].map { !$0.isLoading && $0.group == group && $0.seconds == entry.seconds } ?? false
    }
}

// MARK: - Reasons

extension UnloadedLanes {
    /// Records that there is no path to a lane's host.
    mutating func setOutage(_ reason: PathStatus.Reason, lastSign: Moment, of lane: inout UnloadedLane) {
        if !reasons.contains(reason), reasons.count < Int(UInt8.max) { reasons.append(reason) }
        let index = (reasons.firstIndex(of: reason) ?? 0) + 1
        lane.setOutage(lastSign: lastSign, reason: UInt8(index))
    }

    /// Returns why there was no path to a lane's host at the last look; `nil` if there was one.
    func reason(of lane: UnloadedLane) -> PathStatus.Reason? {
        lane.reason == 0 ? nil : reasons[Int(lane.reason) - 1]
    }
}

extension UnloadedLane {
    var group: UnloadedLanes.Group {
        UnloadedLanes.Group(submitter: submitter, purpose: purpose)
    }

    private var purpose: UnloadedLanes.Group.Purpose {
        if properties.contains(.awaitsPath) { return .look }
        if !properties.isDisjoint(with: [.isForced, .isRequested]) { return .demanded }
        let hasResponded = properties.contains(.hasResponded)
        if properties.contains(.isUnanswered) { return .retry(hasResponded: hasResponded) }
        return hasResponded ? .known : .attempt
    }
}

/// What the scheduler remembers of a lane that is only in the store. It has 16 bytes, because a million hosts may wait.
///
/// Times have whole seconds. The end of a closure is rounded up, so that no lane is tried too early. The time of a request
/// is rounded down; the lane then waits for it in memory.
struct UnloadedLane: Hashable, Sendable {
    struct Properties: OptionSet, Hashable, Sendable {
        let rawValue: UInt16

        /// The service itself has submitted the requests, not a user.
        static let isOfService = Properties(rawValue: 1 << 0)
        /// The lane was in memory before. Its next watch proves no change of the path.
        static let wasLoaded = Properties(rawValue: 1 << 1)
        /// The store reads the lane.
        static let isLoading = Properties(rawValue: 1 << 2)
        /// The lane is loaded for an attempt that needs a turn.
        static let isLoadingForTurn = Properties(rawValue: 1 << 13)
        /// The lane is closed until ``UnloadedLane/loadsAt``. New requests do not load it earlier.
        static let isClosed = Properties(rawValue: 1 << 3)
        /// Requests are due, and the lane waits for its path: for any, for one that meets its constraints, or for one without
        /// a captive portal. New requests do not load it earlier.
        static let awaitsPath = Properties(rawValue: 1 << 4)
        /// The last attempt failed without a response or with a path error, so that the next one needs a turn.
        static let isUnanswered = Properties(rawValue: 1 << 5)
        /// The following ones have the meanings of the properties of ``SchedulerLane`` with these names.
        static let isHeld = Properties(rawValue: 1 << 6)
        static let isForced = Properties(rawValue: 1 << 7)
        static let isRequested = Properties(rawValue: 1 << 8)
        /// ``UnloadedLane/loadsAt`` is ``SchedulerLane/distrustedUntil``.
        static let isDistrusted = Properties(rawValue: 1 << 9)
        /// The next claim releases requests that are held for `trust`.
        static let releasesTrust = Properties(rawValue: 1 << 10)
        /// The next claim releases requests for every reason that a flush releases.
        static let releasesAll = Properties(rawValue: 1 << 11)
        /// The origin has responded before; see ``OriginStanding``.
        static let hasResponded = Properties(rawValue: 1 << 12)
        /// The last attempts to the origin were slow or got no response.
        static let isFailing = Properties(rawValue: 1 << 14)
        /// The next claim makes all pending requests due.
        static let makesDue = Properties(rawValue: 1 << 15)
    }

    /// ``loadsAt`` in seconds; the maximum stands for never.
    private(set) var seconds: UInt32
    /// The start of the outage, or the last attempt during it, in seconds; 0 if there is no outage.
    private var outage: UInt32 = 0
    private let user: UInt32
    var properties: Properties
    /// ``SchedulerLane/closures``, up to a maximum.
    private(set) var closures: UInt8 = 0
    /// The index of the outage's reason in ``UnloadedLanes/reasons``, plus 1; 0 if there is no outage.
    private(set) var reason: UInt8 = 0

    init(submitter: UInt32?, loadsAt: Moment, _ properties: Properties = []) {
        seconds = UInt32(roundingUp: loadsAt)
        user = submitter ?? 0
        self.properties = submitter == nil ? properties.union(.isOfService) : properties
    }

    var submitter: UInt32? { properties.contains(.isOfService) ? nil : user }
    var isLoading: Bool { properties.contains(.isLoading) }

    /// The time from which the lane may be loaded; `.never` if only a flush or the end of its requests changes that.
    var loadsAt: Moment {
        get { seconds.moment }
        set { seconds = UInt32(roundingUp: newValue) }
    }

    /// Whether a claim of the lane would release held requests, now or when the time of an untrusted server is over.
    var releases: Bool { !properties.isDisjoint(with: [.isDistrusted, .releasesTrust, .releasesAll]) }

    var distrustedUntil: Moment? { properties.contains(.isDistrusted) ? loadsAt : nil }

    /// The start of the outage, or the last attempt during it; `nil` if there is no outage.
    var lastSignOfOutage: Moment? { reason == 0 ? nil : outage.moment }

    /// Records that there is no path.
    mutating func setOutage(lastSign: Moment, reason: UInt8) {
        outage = UInt32(roundingUp: lastSign)
        self.reason = reason
    }

    mutating func setClosures(_ count: Int) { closures = UInt8(min(count, Int(UInt8.max))) }

    /// Records that a request may be due at the given time.
    mutating func rowsAreDue(at moment: Moment) {
        guard properties.isDisjoint(with: [.isClosed, .isHeld, .isDistrusted, .awaitsPath]) else { return }
        seconds = min(seconds, UInt32(roundingDown: moment))
    }

    /// Ends everything that delays the requests, except their own times.
    mutating func force(now: Moment) {
        properties.formIntersection([.isOfService, .wasLoaded, .isLoading, .isLoadingForTurn])
        properties.formUnion([.isForced, .isRequested, .releasesAll])
        (outage, reason, closures) = (0, 0, 0)
        seconds = UInt32(roundingDown: now)
    }

    /// Resets the failures and loads the lane, because its last request has ended. The lane is forgotten if the store then
    /// has no new request.
    mutating func emptied(now: Moment) {
        properties.subtract([.isClosed, .isHeld, .isDistrusted, .isUnanswered, .awaitsPath])
        (outage, reason, closures) = (0, 0, 0)
        seconds = UInt32(roundingDown: now)
    }
}

extension UnloadedLane.Properties {
    init(_ standing: OriginStanding) {
        self =
            switch standing {
            case .new: []
            case .prompt: .hasResponded
            case .slow, .doubtful: [.hasResponded, .isFailing]
            case .silent: .isFailing
            }
    }

    var standing: OriginStanding {
        switch (contains(.hasResponded), contains(.isFailing)) {
        case (false, false): .new
        case (true, false): .prompt
        case (true, true): .doubtful(failures: 1)
        case (false, true): .silent
        }
    }
}

extension UInt32 {
    fileprivate init(roundingUp moment: Moment) {
        let (seconds, rest) = moment.components
        self = UInt32(clamping: rest > 0 && seconds < Int64.max ? seconds + 1 : seconds)
    }

    fileprivate init(roundingDown moment: Moment) { self = UInt32(clamping: moment.components.seconds) }

    /// The moment of so many seconds; the maximum stands for `.never`.
    fileprivate var moment: Moment { self == .max ? .never : .seconds(Int64(self)) }
}

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

public import Foundation

/// A request as the queue knows it.
public struct QueuedRequest: Hashable, Sendable {
    /// Where a request is on its way.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// Waits to be tried.
        case pending
        /// Waits for other requests to be delivered.
        case blocked
        /// Is being tried.
        case inflight
        /// Needs attention; see ``QueuedRequest/holdReason``.
        case held
        /// Was answered as expected.
        case delivered
        /// Was given up.
        case dead
        /// Was dropped by somebody.
        case cancelled
        /// Made way for a newer request with the same replace key.
        case superseded

        /// Whether it is over: `delivered`, `dead`, `cancelled` or `superseded`.
        public var isFinal: Bool {
            switch self {
            case .pending, .blocked, .inflight, .held: false
            case .delivered, .dead, .cancelled, .superseded: true
            }
        }
    }

    /// The request's id.
    public let id: String
    /// Its place: requests of a lane in order are sent by it. Rises with every request accepted.
    public let sequence: Int64
    /// Where it is on its way.
    public let state: State
    /// Why it is held, when it is.
    public let holdReason: HoldReason?
    /// The request method.
    public let method: String
    /// The request URL.
    public let url: String
    /// The lane's label, `nil` for the common lane of the origin.
    public let lane: String?
    /// Whether its lane keeps order.
    public let isFIFO: Bool
    /// Which requests of the lane go first: 0 before 9.
    public let priority: Int
    /// The length of the body, also when it is not kept any more.
    public let bodyBytes: Int64
    /// How many attempts were made. Those that failed because the network was down, or this machine was
    /// short of something, do not count.
    public let attempts: Int
    /// How many attempts ended before they could count: the network was down, or this machine was short of
    /// descriptors, memory, threads or ports.
    public let deferrals: Int
    /// When it was enqueued, by the wall clock of that moment.
    public let created: Date
    /// When it is due, while it is pending. Its lane may be closed for longer.
    public let due: Date?
    /// When it is given up if it is not delivered before, by the wall clock.
    public let expires: Date?
    /// When it was delivered or given up.
    public let finished: Date?
    /// The status of its last answer, if it had one.
    public let status: Int?
    /// What its last attempt failed of, or why it was given up, or which request it depended on in vain.
    public let lastError: String?
    /// Until when its lane is closed, while it is: by a server's `Retry-After`, after failures, or because this machine
    /// was short of something.
    public internal(set) var laneClosure: LaneClosure?
    /// Why it waits while it is pending or blocked; `nil` when it is about to be tried. What only a running queue knows
    /// (``QueuedReason/notReachable``, ``QueuedReason/laneClosed`` after failures, ``QueuedReason/noFreeSlot``,
    /// ``QueuedReason/localShortage``) is missing while the queue does not run.
    public internal(set) var obstacle: QueuedReason?

    let laneID: Int64?
}

/// All that the queue knows of one request.
public struct RequestDetails: Hashable, Sendable {
    /// What ``OfflineQueue/list(_:)`` tells.
    public internal(set) var summary: QueuedRequest
    /// The header lines as they were given, without the idempotency key.
    public let headers: [QueueRequest.Header]
    /// The idempotency key's value, if it has one.
    public let idempotencyKey: String?
    /// The replace key, if it has one.
    public let replaceKey: String?
    /// The ids of the requests it still waits for.
    public let dependencies: [String]
    /// Whether it is rather not delivered than sent twice.
    public let isAtMostOnce: Bool
    /// How long the parts of its next attempt may take.
    public let timeouts: AttemptTimeouts
    /// Until when the server may still execute an attempt that a timeout has cut, by the wall clock; no attempt begins
    /// before. `nil` when it is not so.
    public let busyUntil: Date?
    /// The newest attempts, oldest first; at most 32 are kept.
    public let attempts: [RecordedAttempt]
    /// The last answer, when the request is over and had one.
    public let response: RecordedResponse?
}

/// One attempt, as the store keeps it.
public struct RecordedAttempt: Hashable, Sendable {
    /// Counts from 1 over all attempts of the request.
    public let number: Int
    /// When it began, by the wall clock.
    public let started: Date
    /// How long it took.
    public let duration: Duration
    /// The answer's status, if one came.
    public let status: Int?
    /// libcurl's code (`CURLcode`), 0 when an answer came.
    public let curlCode: Int
    /// What it failed of, cut after 512 bytes.
    public let error: String?
}

/// An answer, as the store keeps it.
public struct RecordedResponse: Hashable, Sendable {
    /// The status.
    public let status: Int
    /// The header fields; at most 64 KiB of them.
    public let headers: [QueueRequest.Header]
    /// The first 64 KiB of the body.
    public let body: Data
    /// Whether the body was longer, or its connection ended before it did.
    public let isTruncated: Bool

    package init(status: Int, headers: [QueueRequest.Header], body: Data, isTruncated: Bool) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isTruncated = isTruncated
    }
}

/// Which requests are listed.
public struct RequestQuery: Hashable, Sendable {
    /// Those in one of the states; `nil` for any.
    public var states: Set<QueuedRequest.State>?
    /// Those whose URL has this host; `nil` for any.
    public var host: String?
    /// Those of lanes with this label; `nil` for any, an empty text for lanes without a label.
    public var lane: String?
    /// Those that come after this one in the list; `nil` from the beginning.
    public var after: ListCursor?
    /// How many at most. Default 100; more than ``mostAtOnce`` is that.
    public var limit: Int
    /// How many bytes the requests of a page have at most, counted as their texts and 512 bytes for each. A page has one
    /// request at least. Default: no limit.
    public var maximumBytes = Int.max

    /// The longest part of a list: 10,000.
    public static let mostAtOnce = 10_000

    /// Makes a query.
    public init(states: Set<QueuedRequest.State>? = nil, limit: Int = 100) {
        self.states = states
        self.limit = limit
    }
}

/// Requests selected by what they have in common.
public struct RequestFilter: Hashable, Sendable {
    /// Requests in one of the states; `nil` for the states that an edit is usually for, see
    /// ``OfflineQueue/cancel(matching:)`` and the others.
    public var states: Set<QueuedRequest.State>?
    /// Requests whose URL has this host; `nil` for any.
    public var host: String?
    /// Requests of lanes with this label; `nil` for any, an empty text for lanes without a label.
    public var lane: String?

    /// Makes a filter.
    public init(states: Set<QueuedRequest.State>? = nil, host: String? = nil, lane: String? = nil) {
        self.states = states
        self.host = host
        self.lane = lane
    }
}

/// The outcome of an edit of all requests that match a ``RequestFilter``.
public struct FilteredEditResult: Hashable, Sendable {
    /// How many requests were edited.
    public package(set) var done = 0
    /// How many match and are in a state that the edit does not apply to; nothing was changed there.
    public package(set) var refused = 0

    package init() {}
}

/// A place in a list, to go on from.
public struct ListCursor: Hashable, Sendable {
    /// Whether the place is among the requests that are over.
    package let isFinished: Bool
    package let position: Int64

    package init(isFinished: Bool, position: Int64) {
        self.isFinished = isFinished
        self.position = position
    }
}

/// A part of a list.
public struct RequestPage: Hashable, Sendable {
    /// Requests on their way in their order, then those that are over, newest first.
    public let requests: [QueuedRequest]
    /// Where the next page begins; `nil` after the last.
    public let next: ListCursor?

    package init(requests: [QueuedRequest], next: ListCursor?) {
        self.requests = requests
        self.next = next
    }
}

/// How many requests the queue holds in each state.
public struct QueueCounts: Hashable, Sendable {
    private var numbers: [QueuedRequest.State: Int] = [:]

    /// Nothing at all.
    public init() {}

    /// How many are in a state. Of those that are over, how many the history still has.
    public subscript(state: QueuedRequest.State) -> Int {
        get { numbers[state, default: 0] }
        set { numbers[state] = newValue }
    }
}

/// The queue in numbers.
public struct QueueStatistics: Hashable, Sendable {
    /// How many requests are in each state.
    public let counts: QueueCounts
    /// Requests on their way, as the limits count them.
    public let requests: Int
    /// Bytes of requests on their way, as the limits count them.
    public let bytes: Int64
    /// When the oldest request on its way was enqueued.
    public let oldest: Date?
    /// Lanes with requests on their way.
    public let lanes: Int
    /// Whether the whole queue is paused.
    public let isPaused: Bool
    /// The lanes that are paused, be the whole queue or not, by host and label; at most ``mostPausedLanes``.
    public let pausedLanes: [PausedLane]
    /// The lanes with requests that are closed: those that a server's `Retry-After` keeps closed, by host and label, then
    /// others that failures keep closed; at most ``mostPausedLanes`` of each. No lane is listed twice.
    public internal(set) var closedLanes: [ClosedLane]
    /// The size of the database's files.
    public let databaseBytes: Int64
    /// Bytes that the queue's file system has free.
    public let freeBytes: Int64
    /// Uploads that no request uses yet: see ``OfflineQueue/appendToBody(_:_:at:for:)``.
    public internal(set) var stagedBodies = 0
    /// Their bytes.
    public internal(set) var stagedBytes: Int64 = 0

    /// How many paused lanes, and how many closed ones, are told: 1000.
    public static let mostPausedLanes = 1000

    /// Lanes that are paused, as ``OfflineQueue/resume(host:lane:)`` takes them.
    public struct PausedLane: Hashable, Sendable {
        /// The host of their URLs.
        public let host: String
        /// Their label, empty for lanes without one.
        public let label: String
    }

    /// A lane that is closed for a time.
    public struct ClosedLane: Hashable, Sendable {
        /// Distinguishes lanes of the same host and label.
        let id: Int64
        /// The host of its URLs.
        public let host: String
        /// Its label, empty for a lane without one.
        public let label: String
        /// Until when, and why.
        public let closure: LaneClosure
    }
}

/// What became of something asked of a request.
public enum EditResult: Hashable, Sendable {
    /// It was done; the request is in this state now. One that is being sent stays `inflight` until its attempt
    /// is over, and then does as was asked if it was not delivered.
    case done(QueuedRequest.State)
    /// It does not fit the state that the request is in; nothing was changed.
    case refused(QueuedRequest.State)
    /// The queue does not know the id.
    case unknown
}

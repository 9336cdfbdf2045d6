public import Foundation

/// The stored state of a request in the queue.
public struct QueuedRequest: Hashable, Sendable {
    /// The state of a request.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// It waits for an attempt.
        case pending
        /// It waits until other requests are delivered.
        case blocked
        /// An attempt is in progress.
        case inflight
        /// It needs attention; see ``QueuedRequest/holdReason``.
        case held
        /// The server responded as expected.
        case delivered
        /// It was given up.
        case dead
        /// It was cancelled by a caller or user.
        case cancelled
        /// A newer request with the same replace key replaced it.
        case superseded

        /// Whether the state is final: `delivered`, `dead`, `cancelled` or `superseded`.
        public var isFinal: Bool {
            switch self {
            case .pending, .blocked, .inflight, .held: false
            case .delivered, .dead, .cancelled, .superseded: true
            }
        }
    }

    /// The request's id.
    public let id: String
    /// The position of the request, which determines the order of a FIFO lane. It rises with every accepted request.
    public let sequence: Int64
    /// The current state.
    public let state: State
    /// The reason for the hold; `nil` unless it is held.
    public let holdReason: HoldReason?
    /// The request method.
    public let method: String
    /// The request URL.
    public let url: String
    /// The lane's label; `nil` for the origin's common lane.
    public let lane: String?
    /// Whether its lane is FIFO.
    public let isFIFO: Bool
    /// The priority within the lane: 0 is sent first, 9 last.
    public let priority: Int
    /// The length of the body, even if the body is no longer stored.
    public let bodyBytes: Int64
    /// The number of counted attempts. Attempts that failed because the network was down, or because this machine was
    /// short of a resource, do not count.
    public let attempts: Int
    /// The number of attempts that did not count, because the network was down or this machine was short of
    /// descriptors, memory, threads or ports.
    public let deferrals: Int
    /// The time at which it was enqueued, by the wall clock at that moment.
    public let created: Date
    /// The time at which a pending request is due. Its lane may be closed for longer.
    public let due: Date?
    /// The time at which it is given up unless delivered before, by the wall clock.
    public let expires: Date?
    /// The time at which it reached a final state.
    public let finished: Date?
    /// The status of the last response, if there was one.
    public let status: Int?
    /// The error of the last attempt, the reason why it was given up, or the dependency that failed.
    public let lastError: String?
    /// The closure of its lane, while it lasts: by a server's `Retry-After`, after failures, or because this machine
    /// was short of a resource.
    public internal(set) var laneClosure: LaneClosure?
    /// The reason why it waits while it is pending or blocked; `nil` if it is about to be tried. Only a running queue
    /// reports ``QueuedReason/notReachable``, ``QueuedReason/laneClosed`` after failures, ``QueuedReason/noFreeSlot``
    /// and ``QueuedReason/localShortage``.
    public internal(set) var obstacle: QueuedReason?

    let laneID: Int64?
    /// Whether it waits for an earlier request of a lane in order.
    let isBehind: Bool
}

/// All details of one request.
public struct RequestDetails: Hashable, Sendable {
    /// The part that ``OfflineQueue/list(_:)`` returns.
    public internal(set) var summary: QueuedRequest
    /// The header lines as given, without the idempotency key.
    public let headers: [QueueRequest.Header]
    /// The value of the idempotency key, if there is one.
    public let idempotencyKey: String?
    /// The replace key, if there is one.
    public let replaceKey: String?
    /// The ids of the requests that it still waits for.
    public let dependencies: [String]
    /// Whether the request is never sent twice; see ``EnqueueOptions/isAtMostOnce``.
    public let isAtMostOnce: Bool
    /// The timeouts of the next attempt.
    public let timeouts: AttemptTimeouts
    /// The time until which the server may still execute an attempt that a timeout ended, by the wall clock. No attempt
    /// starts earlier. `nil` if there is no such attempt.
    public let busyUntil: Date?
    /// The latest attempts, oldest first; at most 32 are kept.
    public let attempts: [RecordedAttempt]
    /// The last response, if the request has finished and received one.
    public let response: RecordedResponse?
}

/// A stored attempt.
public struct RecordedAttempt: Hashable, Sendable {
    /// The number of the attempt, counted from 1 over all attempts of the request.
    public let number: Int
    /// The start time, by the wall clock.
    public let started: Date
    /// The duration.
    public let duration: Duration
    /// The status of the response, if one was received.
    public let status: Int?
    /// libcurl's result code (`CURLcode`); 0 if a response was received.
    public let curlCode: Int
    /// The error, cut after 512 bytes.
    public let error: String?
}

/// A stored response.
public struct RecordedResponse: Hashable, Sendable {
    /// The status.
    public let status: Int
    /// The header fields; at most 64 KiB.
    public let headers: [QueueRequest.Header]
    /// The first 64 KiB of the body.
    public let body: Data
    /// Whether the body was longer than what is stored, or its connection ended early.
    public let isTruncated: Bool

    package init(status: Int, headers: [QueueRequest.Header], body: Data, isTruncated: Bool) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isTruncated = isTruncated
    }
}

/// The selection of requests for a list.
public struct RequestQuery: Hashable, Sendable {
    /// Selects requests in one of these states; `nil` selects any.
    public var states: Set<QueuedRequest.State>?
    /// Selects requests whose URL has this host; `nil` selects any.
    public var host: String?
    /// Selects requests of lanes with this label; an empty label selects lanes without one, `nil` selects any.
    public var lane: String?
    /// Selects requests after this position in the list; `nil` starts at the beginning.
    public var after: ListCursor?
    /// The maximum number of requests. Default 100. Values above ``mostAtOnce`` are reduced to it.
    public var limit: Int
    /// The maximum size of a page in bytes: the texts of its requests plus 512 bytes for each. A page has at least one
    /// request. Default: no limit.
    public var maximumBytes = Int.max

    /// The maximum number of requests in a page: 10,000.
    public static let mostAtOnce = 10_000

    /// Creates a query.
    public init(states: Set<QueuedRequest.State>? = nil, limit: Int = 100) {
        self.states = states
        self.limit = limit
    }
}

/// A filter that selects requests for an edit.
public struct RequestFilter: Hashable, Sendable {
    /// Selects requests in one of these states; `nil` selects the states that the edit applies to by default, see
    /// ``OfflineQueue/cancel(matching:)`` and the other edits.
    public var states: Set<QueuedRequest.State>?
    /// Selects requests whose URL has this host; `nil` selects any.
    public var host: String?
    /// Selects requests of lanes with this label; an empty label selects lanes without one, `nil` selects any.
    public var lane: String?

    /// Creates a filter.
    public init(states: Set<QueuedRequest.State>? = nil, host: String? = nil, lane: String? = nil) {
        self.states = states
        self.host = host
        self.lane = lane
    }
}

/// The outcome of an edit of all requests that match a ``RequestFilter``.
public struct FilteredEditResult: Hashable, Sendable {
    /// The number of edited requests.
    public package(set) var done = 0
    /// The number of matching requests in a state that the edit does not apply to. They were not changed.
    public package(set) var refused = 0

    package init() {}
}

/// A position in a list, from which the next page continues.
public struct ListCursor: Hashable, Sendable {
    /// Whether the position is among the finished requests.
    package let isFinished: Bool
    package let position: Int64

    package init(isFinished: Bool, position: Int64) {
        self.isFinished = isFinished
        self.position = position
    }
}

/// One page of a list.
public struct RequestPage: Hashable, Sendable {
    /// The requests: unfinished ones in queue order, then finished ones, newest first.
    public let requests: [QueuedRequest]
    /// The position of the next page; `nil` after the last page.
    public let next: ListCursor?

    package init(requests: [QueuedRequest], next: ListCursor?) {
        self.requests = requests
        self.next = next
    }
}

/// The number of requests in each state.
public struct QueueCounts: Hashable, Sendable {
    private var numbers: [QueuedRequest.State: Int] = [:]

    /// Creates counts of zero.
    public init() {}

    /// The number of requests in a state. For final states, the number of requests that are still in the history.
    public subscript(state: QueuedRequest.State) -> Int {
        get { numbers[state, default: 0] }
        set { numbers[state] = newValue }
    }
}

/// Statistics of a queue.
public struct QueueStatistics: Hashable, Sendable {
    /// The number of requests in each state.
    public let counts: QueueCounts
    /// The number of unfinished requests, as counted for ``QueueLimits/requests``.
    public let requests: Int
    /// The bytes of unfinished requests, as counted for ``QueueLimits/bytes``.
    public let bytes: Int64
    /// The time at which the oldest unfinished request was enqueued.
    public let oldest: Date?
    /// The number of lanes with unfinished requests.
    public let lanes: Int
    /// Whether the whole queue is paused.
    public let isPaused: Bool
    /// The paused lanes by host and label, whether or not the whole queue is paused; at most ``mostPausedLanes``.
    public let pausedLanes: [PausedLane]
    /// The closed lanes with requests: first those closed by a server's `Retry-After`, by host and label, then others;
    /// at most ``mostPausedLanes`` of each. No lane is listed twice.
    public internal(set) var closedLanes: [ClosedLane]
    /// The size of the database's files in bytes.
    public let databaseBytes: Int64
    /// The free bytes of the queue's file system.
    public let freeBytes: Int64
    /// The number of uploads that no request uses yet; see ``OfflineQueue/appendToBody(_:_:at:for:)``.
    public internal(set) var stagedBodies = 0
    /// The bytes of these uploads.
    public internal(set) var stagedBytes: Int64 = 0

    /// The maximum number of paused lanes and of closed lanes in the statistics: 1000.
    public static let mostPausedLanes = 1000

    /// A paused lane, in the form that ``OfflineQueue/resume(host:lane:)`` accepts. It may stand for several origins of
    /// the host.
    public struct PausedLane: Hashable, Sendable {
        /// The host of the lane's URLs.
        public let host: String
        /// The lane's label; empty for a lane without one.
        public let label: String
    }

    /// A lane that is closed for a time.
    public struct ClosedLane: Hashable, Sendable {
        /// Distinguishes lanes of the same host and label.
        let id: Int64
        /// The host of the lane's URLs.
        public let host: String
        /// The lane's label; empty for a lane without one.
        public let label: String
        /// The closure: its end and its cause.
        public let closure: LaneClosure
    }
}

/// The result of an edit of one request.
public enum EditResult: Hashable, Sendable {
    /// The edit was applied; the associated value is the new state. A request in flight stays `inflight` until its
    /// attempt ends. The edit then takes effect unless the request was delivered.
    case done(QueuedRequest.State)
    /// The edit does not apply to the request's state, which is the associated value. Nothing was changed.
    case refused(QueuedRequest.State)
    /// The id is unknown.
    case unknown
}

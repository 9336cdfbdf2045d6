/// A query for one page of ``OfflineQueue/list(_:)``.
public struct RequestQuery: Hashable, Sendable {
    /// Selects requests in one of these states; `nil` selects any.
    public var states: Set<QueuedRequest.State>?
    /// Selects requests whose URL has this host; `nil` selects any.
    public var host: String?
    /// Selects requests of lanes with this label. An empty label selects lanes without one; `nil` selects any.
    public var lane: String?
    /// Selects requests with this ``EnqueueOptions/tag``; `nil` selects any.
    public var tag: String?
    /// Selects requests with this submitter; `nil` selects any.
    package var submitter: SelectedSubmitter?
    /// Selects requests after this position in the list; `nil` starts at the beginning.
    public var after: ListCursor?
    /// The maximum number of requests in the page. Default 100. A value above ``maximumLimit`` means ``maximumLimit``.
    public var limit: Int
    /// The maximum size of the page in bytes. Default: no limit.
    ///
    /// The size is the sum of the requests' texts plus 512 bytes for each request. A page contains at least one request
    /// even if that one is larger.
    public var maximumBytes = Int.max

    /// The maximum number of requests in a page: 10,000.
    public static let maximumLimit = 10_000

    /// Creates a query.
    public init(states: Set<QueuedRequest.State>? = nil, limit: Int = 100) {
        self.states = states
        self.limit = limit
    }
}

/// A filter that selects requests for an edit.
public struct RequestFilter: Hashable, Sendable {
    /// Selects requests in one of these states. `nil` selects the edit's default states, which each edit documents:
    /// ``OfflineQueue/cancel(matching:)``, ``OfflineQueue/hold(matching:)``, ``OfflineQueue/release(matching:)`` and
    /// ``OfflineQueue/retry(matching:newKey:)``.
    public var states: Set<QueuedRequest.State>?
    /// Selects requests whose URL has this host; `nil` selects any.
    public var host: String?
    /// Selects requests of lanes with this label. An empty label selects lanes without one; `nil` selects any.
    public var lane: String?
    /// Selects requests with this ``EnqueueOptions/tag``; `nil` selects any.
    public var tag: String?
    /// Selects requests with this submitter; `nil` selects any.
    package var submitter: SelectedSubmitter?

    /// Creates a filter.
    public init(
        states: Set<QueuedRequest.State>? = nil,
        host: String? = nil,
        lane: String? = nil,
        tag: String? = nil
    ) {
        self.states = states
        self.host = host
        self.lane = lane
        self.tag = tag
    }
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

/// The result of an edit of one request.
public enum EditResult: Hashable, Sendable {
    /// The edit was applied. The associated value is the new state.
    ///
    /// A request in flight stays `inflight` until its attempt ends. Then the edit takes effect, unless the attempt
    /// delivered the request or the queue gave the request up.
    case done(QueuedRequest.State)
    /// The request is in a state that the edit does not apply to. The associated value is that state. Nothing was
    /// changed.
    case refused(QueuedRequest.State)
    /// The queue does not know the id.
    case unknown
}

/// The result of an edit of all requests that match a ``RequestFilter``.
public struct FilteredEditResult: Hashable, Sendable {
    /// The number of edited requests.
    public package(set) var done = 0
    /// The number of matching requests that were not changed: the edit does not apply to their state, or there is no
    /// room for their retry. A dry run ignores the room.
    public package(set) var refused = 0
    /// The first error of a retry for which there is no room; `nil` if there is room for all. The codes are `queueFull`
    /// and `quotaExceeded`.
    public package(set) var refusal: QueueError?

    package init() {}
}

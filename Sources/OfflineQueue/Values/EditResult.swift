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

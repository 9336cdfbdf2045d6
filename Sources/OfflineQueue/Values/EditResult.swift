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

/// The outcome of an edit of all requests that match a ``RequestFilter``.
public struct FilteredEditResult: Hashable, Sendable {
    /// The number of edited requests.
    public package(set) var done = 0
    /// The number of matching requests in a state that the edit does not apply to. They were not changed.
    public package(set) var refused = 0

    package init() {}
}

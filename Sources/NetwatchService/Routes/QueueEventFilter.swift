internal import OfflineQueue

/// The filter of a stream of events. Its parameters have the same names as in the filter of the list.
struct QueueEventFilter: Hashable {
    /// Selects events after which the request is in one of these states; `nil` selects any, and events of lanes.
    var states: Set<QueuedRequest.State>?
    /// Selects events of this host, and those of the whole queue; `nil` selects any.
    var host: String?
    /// Selects events of lanes with this label, and those of the whole queue. Empty selects lanes without a label;
    /// `nil` selects any.
    var lane: String?

    /// Selects events of requests with this tag; `nil` selects any, and events of lanes and of the whole queue.
    var tag: String?
    /// Selects events of the requests and lanes of this user, and those of the whole queue; `nil` selects any.
    var submitter: UInt32?

    func matches(_ event: QueueEvent) -> Bool {
        guard event.kind != .lost else { return true }
        if let states, event.newState.map(states.contains) != true { return false }
        if let tag, event.tag != tag { return false }
        // An event of the whole queue concerns every host and lane.
        guard let eventHost = event.host else { return true }
        if let submitter, event.submitter != submitter { return false }
        return (host ?? eventHost) == eventHost && (lane ?? event.lane ?? "") == (event.lane ?? "")
    }
}

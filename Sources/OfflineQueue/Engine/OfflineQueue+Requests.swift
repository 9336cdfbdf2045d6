internal import Foundation
internal import NetwatchEventLoop

/// Queries and edits of the requests in the queue.
extension OfflineQueue {
    /// Returns one page of requests: unfinished ones in queue order, then finished ones, newest first.
    ///
    /// ```swift
    /// var query = RequestQuery(states: [.pending, .held])
    /// repeat {
    ///     let page = try await queue.list(query)
    ///     for request in page.requests { print(request.id, request.state, request.lastError ?? "") }
    ///     query.after = page.next
    /// } while query.after != nil
    /// ```
    ///
    /// - Throws: ``QueueError`` of the store.
    public func list(_ query: RequestQuery = RequestQuery()) async throws -> RequestPage {
        let page = try await store.page(query)
        return RequestPage(requests: page.requests.map(withWaitReason), next: page.next)
    }

    /// Returns all details of one request; `nil` if the queue does not know the id.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func request(_ id: String) async throws -> RequestDetails? {
        try await store.details(of: id)?.changing(withWaitReason)
    }

    /// Returns the ids that begin with a prefix, sorted. If an id equals the prefix, it is the first one.
    ///
    /// All other methods accept only complete ids, because a prefix that is unique now may become ambiguous later.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the ids. An empty prefix matches every id.
    ///   - limit: The maximum number of ids returned.
    /// - Throws: ``QueueError`` of the store.
    public func ids(beginningWith prefix: String, limit: Int) async throws -> [String] {
        try await store.ids(beginningWith: prefix, limit: limit)
    }

    /// Returns the user who enqueued each of the requests; `nil` if that is not known. Unknown ids are left out.
    ///
    /// - Throws: ``QueueError`` of the store.
    package func submitters(of ids: [String]) async throws -> [String: UInt32?] {
        try await store.storedStates(of: ids).mapValues(\.submitter)
    }

    /// Returns the hold reasons of those of the requests that are held.
    ///
    /// - Throws: ``QueueError`` of the store.
    package func holdReasons(of ids: [String]) async throws -> [String: HoldReason] {
        try await store.storedStates(of: ids).compactMapValues(\.holdReason)
    }

    /// The number of requests in each state.
    public var counts: QueueCounts {
        get async throws { try await store.counts() }
    }

    /// Returns statistics of the queue.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func statistics() async throws -> QueueStatistics {
        var statistics = try await store.statistics()
        let bodies = await staged.list()
        statistics.stagedBodies = bodies.count
        statistics.stagedBytes = bodies.reduce(0) { $0 + $1.bytes }
        statistics.closedLanes += lanesClosedHere(besides: statistics.closedLanes)
        statistics.completions = statistics.completions.map(withHandler)
        return statistics
    }

    /// Cancels requests, so that the queue does not send them again.
    ///
    /// If a request is in flight, its attempt is ended. The request is then cancelled, unless the attempt delivered the
    /// request or the queue gave it up.
    ///
    /// A request that was given up can be cancelled, too. Its body is deleted, so it can no longer be retried. Its
    /// webhook is not sent again.
    ///
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func cancel(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.cancel, ids)
    }

    /// Holds requests: the queue does not send them until ``release(_:)`` or ``retry(_:newKey:)``.
    ///
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func hold(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.hold, ids)
    }

    /// Releases held requests, whatever the reason for the hold.
    ///
    /// A request that is held because a dependency failed no longer waits for any of its dependencies. A request that
    /// is held for ``HoldReason/key`` and still cannot be decrypted is refused. ``retry(_:newKey:)`` refuses it, too.
    ///
    /// Each lane of these requests may send one retry at once, even if the retry budget is used up; see
    /// <doc:BeingAGoodCitizen#The-retry-budget>. A closed lane stays closed; ``flush(host:lane:)`` opens it.
    ///
    /// A request that is held for ``HoldReason/ambiguous`` is sent again, even with ``EnqueueOptions/isAtMostOnce``.
    /// The server may have applied it before.
    ///
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func release(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.release, ids)
    }

    /// Makes requests due now, whether they wait, are held or were given up.
    ///
    /// The requests keep their places in the queue. Their time to live and their attempts start again, and they no
    /// longer wait for dependencies, a scheduled time or the delay after a timeout. A closed lane stays closed;
    /// ``flush(host:lane:)`` opens it.
    ///
    /// - Parameters:
    ///   - ids: The ids of the requests.
    ///   - newKey: Whether each request gets a new idempotency key, so that the server treats it as a new request.
    ///     Default `false`.
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func retry(_ ids: [String], newKey: Bool = false) async throws -> [EditResult] {
        try await edit(.retry(newKey: newKey), ids)
    }

    package func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult] {
        guard !ids.isEmpty else { return [] }
        let results = try await reporting { try await store.edit(edit, ids) }
        if edit.cancels {
            let cancelled = Set(ids)
            for attempt in inflight.values where cancelled.contains(attempt.id) { attempt.transfer.cancel() }
        }
        await edited()
        return results
    }

    /// Wakes the calls that wait for room in the queue or for the end of a request, because an edit may have caused
    /// either.
    func edited() async {
        capacityWaiters.changed()
        await resolveFinished()
    }

    /// Pauses the whole queue or some lanes: no attempt starts there until ``resume(host:lane:)``.
    ///
    /// Without arguments, the whole queue is paused. A pause survives a restart. Requests in flight are not affected.
    ///
    /// ```swift
    /// try await queue.pause(host: "example.com")
    /// // Later:
    /// try await queue.resume(host: "example.com")
    /// ```
    ///
    /// - Parameters:
    ///   - host: The host of the lanes to pause. Default `nil`: all hosts.
    ///   - lane: The label of the lanes to pause. An empty label selects lanes without one. Default `nil`: all labels.
    /// - Returns: The number of matching lanes; for the whole queue, the number of lanes with requests.
    /// - Throws: ``QueueError``: `unknownLane` if no lane matches, in which case nothing was changed; errors of the
    ///   store.
    @discardableResult
    public func pause(host: String? = nil, lane: String? = nil) async throws -> Int {
        try await setPaused(true, LaneSelection(host: host, label: lane))
    }

    /// Resumes the whole queue or some lanes after ``pause(host:lane:)``.
    ///
    /// Without arguments, the pause of the whole queue and the pauses of all lanes end. With arguments, only the pauses
    /// of the matching lanes end. If the whole queue is paused too, these lanes continue to wait.
    ///
    /// - Parameters:
    ///   - host: The host of the lanes to resume. Default `nil`: all hosts.
    ///   - lane: The label of the lanes to resume. An empty label selects lanes without one. Default `nil`: all labels.
    /// - Returns: The number of matching lanes; for the whole queue, the number of lanes with requests.
    /// - Throws: ``QueueError``: `unknownLane` if no lane matches, in which case nothing was changed; errors of the
    ///   store.
    @discardableResult
    public func resume(host: String? = nil, lane: String? = nil) async throws -> Int {
        try await setPaused(false, LaneSelection(host: host, label: lane))
    }

    /// Returns whether the whole queue is paused, and which of the selected lanes are paused individually.
    ///
    /// - Throws: ``QueueError`` of the store.
    package func pauses(in selection: LaneSelection) async throws -> LanePauses {
        try await store.pauses(in: selection)
    }

    /// Pauses or resumes lanes, like ``pause(host:lane:)`` and ``resume(host:lane:)``. ``LaneSelection/all`` stands for
    /// the whole queue.
    package func setPaused(_ isPaused: Bool, _ selection: LaneSelection) async throws -> Int {
        let lanes = selection == .all ? nil : selection
        let count = try await reporting { try await store.setPaused(isPaused, lanes: lanes) }
        guard let lanes, count == 0 else { return count }
        throw lanes.unknown
    }
}

extension RequestDetails {
    fileprivate func changing(_ change: (QueuedRequest) -> QueuedRequest) -> RequestDetails {
        var details = self
        details.summary = change(summary)
        return details
    }
}

/// Edits of all requests that match a filter.
///
/// Each edit is one transaction: if the store fails, no request is edited. The edit needs 8 bytes of memory for each
/// request. Other calls that write wait until the transaction ends, about 10 to 30 s for a million requests.
extension OfflineQueue {
    /// Cancels all matching requests in the same way as ``cancel(_:)``.
    ///
    /// - Parameter filter: The requests to cancel. If `states` is `nil`: all unfinished requests.
    /// - Throws: ``QueueError`` of the store.
    public func cancel(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.cancel, matching: filter)
    }

    /// Holds all matching requests in the same way as ``hold(_:)``.
    ///
    /// - Parameter filter: The requests to hold. If `states` is `nil`: `pending`, `blocked` and `inflight` requests.
    /// - Throws: ``QueueError`` of the store.
    public func hold(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.hold, matching: filter)
    }

    /// Releases all matching requests in the same way as ``release(_:)``.
    ///
    /// - Parameter filter: The requests to release. If `states` is `nil`: `held` requests.
    /// - Throws: ``QueueError`` of the store.
    public func release(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.release, matching: filter)
    }

    /// Retries all matching requests in the same way as ``retry(_:newKey:)``.
    ///
    /// ```swift
    /// let result = try await queue.retry(matching: RequestFilter(states: [.dead], host: "example.com"))
    /// print("\(result.done) requests are tried again")
    /// ```
    ///
    /// - Parameters:
    ///   - filter: The requests to retry. If `states` is `nil`: `held` and `dead` requests.
    ///   - newKey: Whether each request gets a new idempotency key. Default `false`.
    /// - Throws: ``QueueError`` of the store.
    public func retry(matching filter: RequestFilter, newKey: Bool = false) async throws -> FilteredEditResult
    {
        try await edit(.retry(newKey: newKey), matching: filter)
    }

    /// Applies an edit to all matching requests.
    ///
    /// - Parameters:
    ///   - edit: The edit.
    ///   - filter: The requests to edit. If `states` is `nil`, the edit determines the states.
    ///   - isDryRun: Whether the requests are only counted, not edited. Default `false`.
    package func edit(
        _ edit: QueueEdit,
        matching filter: RequestFilter,
        isDryRun: Bool = false
    ) async throws -> FilteredEditResult {
        var filter = filter
        filter.states = filter.states ?? edit.defaultStates
        let edited = try await reporting { [filter] in
            try await store.edit(edit, matching: filter, isDryRun: isDryRun)
        }
        guard !isDryRun else { return edited.result }
        for sequence in edited.cancelledInFlight { inflight[sequence]?.transfer.cancel() }
        await self.edited()
        return edited.result
    }
}

extension QueueEdit {
    /// The states of the requests that the edit applies to if the filter has none.
    fileprivate var defaultStates: Set<QueuedRequest.State> {
        switch self {
        case .cancel, .withdraw: [.pending, .blocked, .inflight, .held]
        case .hold: [.pending, .blocked, .inflight]
        case .release: [.held]
        case .retry: [.held, .dead]
        }
    }
}

internal import Foundation

/// Queries and edits of the requests in the queue.
extension OfflineQueue {
    /// Returns one page of requests: unfinished ones in queue order, then finished ones, newest first.
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

    /// Returns the ids with a given prefix, sorted. An id that equals the prefix comes first.
    ///
    /// Every other method takes complete ids, because a prefix that is unique now may become ambiguous later.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the ids. An empty prefix matches every id.
    ///   - limit: The maximum number of ids returned.
    /// - Throws: ``QueueError`` of the store.
    public func ids(beginningWith prefix: String, limit: Int) async throws -> [String] {
        try await store.ids(beginningWith: prefix, limit: limit)
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
        return statistics
    }

    /// Cancels requests: the queue drops them and no longer sends them. A request in flight is cancelled unless it is
    /// delivered.
    ///
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func cancel(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.cancel, ids)
    }

    /// Holds requests until they are released.
    ///
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func hold(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.hold, ids)
    }

    /// Releases held requests, whatever the reason for the hold. A request whose dependency failed is sent without it.
    ///
    /// - Returns: The result for each request, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func release(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.release, ids)
    }

    /// Retries requests that were given up, are held or wait, as if for the first time. They keep their place in the
    /// queue, and their time to live starts again. Their lane may still be closed after failures; ``flush()`` opens it.
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
        if edit == .cancel {
            let cancelled = Set(ids)
            for attempt in inflight.values where cancelled.contains(attempt.id) { attempt.transfer.cancel() }
        }
        await edited()
        return results
    }

    /// Wakes calls that may wait for what an edit changed.
    func edited() async {
        capacityWaiters.changed()
        await resolveFinished()
    }

    /// Stops starting attempts, in the whole queue or in some lanes, until ``resume(host:lane:)``. A pause survives a
    /// restart. Requests in flight are not affected.
    ///
    /// - Parameters:
    ///   - host: Pauses only lanes to this host. Default `nil`: all hosts. If `lane` is also `nil`, the whole queue is
    ///     paused.
    ///   - lane: Pauses only lanes with this label; an empty label selects lanes without one. Default `nil`: all lanes.
    /// - Returns: The number of matching lanes; for the whole queue, the number of lanes with requests.
    /// - Throws: ``QueueError``: `unknownLane` if no lane matches, and nothing was changed; errors of the store.
    @discardableResult
    public func pause(host: String? = nil, lane: String? = nil) async throws -> Int {
        try await setPaused(true, host, lane)
    }

    /// Ends ``pause(host:lane:)``. Without arguments it ends every pause, of the queue and of all lanes. With arguments
    /// it resumes the matching lanes, which still wait while the whole queue is paused.
    ///
    /// - Parameters:
    ///   - host: Resumes only lanes to this host. Default `nil`: all hosts.
    ///   - lane: Resumes only lanes with this label; an empty label selects lanes without one. Default `nil`: all
    ///     lanes.
    /// - Returns: The number of matching lanes; for the whole queue, the number of lanes with requests.
    /// - Throws: ``QueueError``: `unknownLane` if no lane matches, and nothing was changed; errors of the store.
    @discardableResult
    public func resume(host: String? = nil, lane: String? = nil) async throws -> Int {
        try await setPaused(false, host, lane)
    }

    private func setPaused(_ isPaused: Bool, _ host: String?, _ lane: String?) async throws -> Int {
        let isWhole = host == nil && lane == nil
        let lanes = isWhole ? nil : LaneSelection(host: host?.lowercased(), label: lane)
        let count = try await reporting { try await store.setPaused(isPaused, lanes: lanes) }
        guard let lanes, count == 0 else { return count }
        throw QueueError(.unknownLane, "the queue has no lane \(lanes.words)")
    }
}

extension LaneSelection {
    fileprivate var words: String {
        let label = label.map { $0.isEmpty ? "without a label" : "with the label \(quoted($0))" }
        return [host.map { "to the host \(quoted($0))" }, label].compactMap(\.self).joined(separator: " ")
    }
}

extension RequestDetails {
    fileprivate func changing(_ change: (QueuedRequest) -> QueuedRequest) -> RequestDetails {
        var details = self
        details.summary = change(summary)
        return details
    }
}

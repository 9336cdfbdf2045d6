internal import Foundation

/// What may be known and asked of requests in the queue.
extension OfflineQueue {
    /// A part of the requests: those on their way in their order, then those that are over, newest first.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func list(_ query: RequestQuery = RequestQuery()) async throws -> RequestPage {
        let page = try await store.page(query)
        return RequestPage(requests: page.requests.map(withObstacle), next: page.next)
    }

    /// All that is known of one request; `nil` when the queue does not know the id.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func request(_ id: String) async throws -> RequestDetails? {
        try await store.details(of: id)?.changing(withObstacle)
    }

    /// The ids that begin with a text, sorted, so that an id that is the text itself comes first.
    ///
    /// Every other method takes whole ids: a prefix that means one request now may mean another one later.
    ///
    /// - Parameters:
    ///   - prefix: The beginning; an empty one is that of every id.
    ///   - limit: How many ids are returned at most.
    /// - Throws: ``QueueError`` of the store.
    public func ids(beginningWith prefix: String, limit: Int) async throws -> [String] {
        try await store.ids(beginningWith: prefix, limit: limit)
    }

    /// How many requests are in which state.
    public var counts: QueueCounts {
        get async throws { try await store.counts() }
    }

    /// The queue in numbers.
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

    /// Drops requests: they are not sent any more. One that is being sent is dropped unless it is delivered.
    ///
    /// - Returns: What became of each, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func cancel(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.cancel, ids)
    }

    /// Holds requests until they are released.
    ///
    /// - Returns: What became of each, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func hold(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.hold, ids)
    }

    /// Lets held requests go on, for whatever reason they are held. One whose dependency failed goes without it.
    ///
    /// - Returns: What became of each, in the order of the ids.
    /// - Throws: ``QueueError`` of the store.
    public func release(_ ids: [String]) async throws -> [EditResult] {
        try await edit(.release, ids)
    }

    /// Tries requests anew that were given up, are held or wait, as if for the first time. They keep their place
    /// and live as long again; their lane may still be closed after failures, which ``flush()`` ends.
    ///
    /// - Parameters:
    ///   - ids: The ids of the requests.
    ///   - newKey: Whether they get another idempotency key, so that the server takes them for new ones.
    ///     Default `false`.
    /// - Returns: What became of each, in the order of the ids.
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

    /// Others may wait for what an edit changed.
    func edited() async {
        room.changed()
        await answerWithoutAttempt()
    }

    /// Begins nothing new, of the whole queue or of some lanes, until ``resume(host:lane:)``; a restart does not
    /// change that. What is being sent goes on.
    ///
    /// - Parameters:
    ///   - host: Only lanes to this host. Default `nil`: all, and the queue as a whole when `lane` is `nil`, too.
    ///   - lane: Only lanes with this label, empty for those without one. Default `nil`: all.
    /// - Returns: How many lanes match; of the whole queue, how many have requests.
    /// - Throws: ``QueueError``: `unknownLane` when none matches, and nothing was changed; those of the store.
    @discardableResult
    public func pause(host: String? = nil, lane: String? = nil) async throws -> Int {
        try await setPaused(true, host, lane)
    }

    /// Ends ``pause(host:lane:)``: without arguments every pause, of the queue and of all lanes; else that of the
    /// lanes that match, which wait all the same while the whole queue is paused.
    ///
    /// - Parameters:
    ///   - host: Only lanes to this host. Default `nil`: all.
    ///   - lane: Only lanes with this label, empty for those without one. Default `nil`: all.
    /// - Returns: How many lanes match; of the whole queue, how many have requests.
    /// - Throws: ``QueueError``: `unknownLane` when none matches, and nothing was changed; those of the store.
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

/// Edits of all requests that match a filter, in one transaction whatever their number.
///
/// Either all of them are edited or, if the store fails, none. Memory grows by 8 bytes per request. Other calls wait
/// until the transaction ends, about 10 to 30 s for a million requests.
extension OfflineQueue {
    /// Cancels all matching requests, as ``cancel(_:)`` does.
    ///
    /// - Parameter filter: If its `states` is `nil`, it matches all unfinished requests.
    /// - Throws: ``QueueError`` of the store.
    public func cancel(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.cancel, matching: filter)
    }

    /// Holds all matching requests, as ``hold(_:)`` does.
    ///
    /// - Parameter filter: If its `states` is `nil`, it matches `pending`, `blocked` and `inflight` requests.
    /// - Throws: ``QueueError`` of the store.
    public func hold(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.hold, matching: filter)
    }

    /// Releases all matching requests, as ``release(_:)`` does.
    ///
    /// - Parameter filter: If its `states` is `nil`, it matches `held` requests.
    /// - Throws: ``QueueError`` of the store.
    public func release(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.release, matching: filter)
    }

    /// Retries all matching requests, as ``retry(_:newKey:)`` does.
    ///
    /// - Parameters:
    ///   - filter: If its `states` is `nil`, it matches `held` and `dead` requests.
    ///   - newKey: Whether each request gets a new idempotency key. Default `false`.
    /// - Throws: ``QueueError`` of the store.
    public func retry(matching filter: RequestFilter, newKey: Bool = false) async throws -> FilteredEditResult
    {
        try await edit(.retry(newKey: newKey), matching: filter)
    }

    /// - Parameter isDryRun: Whether the requests are only counted.
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
    /// The states that the edit applies to, unless a filter names others.
    fileprivate var defaultStates: Set<QueuedRequest.State> {
        switch self {
        case .cancel: [.pending, .blocked, .inflight, .held]
        case .hold: [.pending, .blocked, .inflight]
        case .release: [.held]
        case .retry: [.held, .dead]
        }
    }
}

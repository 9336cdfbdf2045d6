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

/// Edits of all requests that match a filter: one transaction, whatever their number.
///
/// Either all of them are edited or, when the store fails, none. Memory does not grow with the number of requests but for
/// 8 bytes each. Until the transaction is over other calls wait, about 10 to 30 s for a million requests.
extension OfflineQueue {
    /// Drops all requests that match, as ``cancel(_:)`` does.
    ///
    /// - Parameter filter: Without states: all that are not over.
    /// - Throws: ``QueueError`` of the store.
    public func cancel(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.cancel, matching: filter)
    }

    /// Holds all requests that match, as ``hold(_:)`` does.
    ///
    /// - Parameter filter: Without states: `pending`, `blocked` and `inflight` ones.
    /// - Throws: ``QueueError`` of the store.
    public func hold(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.hold, matching: filter)
    }

    /// Releases all requests that match, as ``release(_:)`` does.
    ///
    /// - Parameter filter: Without states: `held` ones.
    /// - Throws: ``QueueError`` of the store.
    public func release(matching filter: RequestFilter) async throws -> FilteredEditResult {
        try await edit(.release, matching: filter)
    }

    /// Tries all requests that match again, as ``retry(_:newKey:)`` does.
    ///
    /// - Parameters:
    ///   - filter: Without states: `held` and `dead` ones.
    ///   - newKey: Whether each gets another idempotency key. Default `false`.
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
        filter.states = filter.states ?? edit.usualStates
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
    /// The states that it is for, unless a filter names others.
    fileprivate var usualStates: Set<QueuedRequest.State> {
        switch self {
        case .cancel: [.pending, .blocked, .inflight, .held]
        case .hold: [.pending, .blocked, .inflight]
        case .release: [.held]
        case .retry: [.held, .dead]
        }
    }
}

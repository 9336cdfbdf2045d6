internal import Foundation

/// Reasons for waiting that only the scheduler knows: paths, slots, shortages, and lanes closed after failures.
extension OfflineQueue {
    /// Returns a pending request with its lane's closure and its reason for waiting, if the store reported none, and a held
    /// request with the time of the next try.
    func withWaitReason(_ request: QueuedRequest) -> QueuedRequest {
        if let reason = request.holdReason { return withNextTry(request, heldFor: reason) }
        guard request.state == .pending, let lane = request.laneID else { return request }
        var request = request
        request.laneClosure = request.laneClosure ?? closure(ofLane: lane)
        request.waitReason = request.waitReason ?? waitReason(of: request, inLane: lane)
        if request.waitReason == .noFreeSlot { request.originLimit = scheduler.loweredLimit(ofLane: lane) }
        return request
    }

    private func withNextTry(_ request: QueuedRequest, heldFor reason: HoldReason) -> QueuedRequest {
        guard phase == .running else { return request }
        let now = now
        let next = scheduler.nextTry(ofHeld: reason, lane: request.laneID) {
            (try? Origin(url: request.url)).map {
                CredentialScope(credential: request.credential, origin: $0)
            }
        }
        var request = request
        request.nextTry = next.map { Date(timeIntervalSinceNow: max(.zero, $0 - now) / .seconds(1)) }
        return request
    }

    private func waitReason(of request: QueuedRequest, inLane lane: Int64) -> QueuedReason? {
        let isDue = request.requestDue.map { $0 <= Date() } ?? true
        let wasTried = request.attempts + request.deferrals > 0
        guard isDue || wasTried else { return .scheduled }
        switch scheduler.waitReason(ofLane: lane, now: now) {
        case let reason? where isDue || reason.isOfMachine: return reason
        case _ where request.laneClosure != nil: return .laneClosed
        case _ where !isDue && isPostponed(request, inLane: lane): return .retryBudget
        case _ where !isDue: return .attemptFailed(request.lastError ?? "")
        case _ where request.precedingID != nil: return .behindEarlier
        default: return nil
        }
    }

    /// Returns whether the retry budget has postponed a request that is not due.
    private func isPostponed(_ request: QueuedRequest, inLane lane: Int64) -> Bool {
        guard request.attempts > 0, let due = request.requestDue else { return false }
        let moment = now + .seconds(due.timeIntervalSinceNow)
        return scheduler.isRetryPostponed(until: moment, lane: lane, now: now)
    }

    private func closure(ofLane id: Int64) -> LaneClosure? {
        scheduler.closure(ofLane: id, now: now).map(closure)
    }

    private func closure(_ closure: Scheduler.Closure) -> LaneClosure {
        LaneClosure(
            until: Date(timeIntervalSinceNow: (closure.until - now) / .seconds(1)),
            status: nil,
            cause: closure.isLocal ? .localShortage : .failures
        )
    }

    /// Returns the lanes that the scheduler keeps closed after failures or a shortage.
    ///
    /// - Parameter known: The closed lanes that the store reports. They are left out.
    func lanesClosedHere(besides known: [QueueStatistics.ClosedLane]) -> [QueueStatistics.ClosedLane] {
        let known = Set(known.map(\.id))
        return scheduler.closures(now: now).lazy.filter { !known.contains($0.lane) }
            .prefix(QueueStatistics.maximumPausedLanes).map {
                QueueStatistics.ClosedLane(id: $0.lane, $0.key, closure: closure($0))
            }
    }
}

extension QueuedReason {
    /// Whether the state of this machine or its network is the reason. It then matters more than a request's backoff.
    fileprivate var isOfMachine: Bool {
        switch self {
        case .notReachable, .captivePortal, .localShortage, .constraint: true
        default: false
        }
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

/// Waiting until a request has finished.
///
/// A thousand clients may wait, so each one costs only its suspended task and an entry here. All deadlines share one
/// timer, because a cancelled `Task.sleep` keeps its memory until its deadline.
extension OfflineQueue {
    struct EndWaiter {
        let deadline: ContinuousClock.Instant?
        /// Whether it was woken before it was suspended.
        var isWoken = false
        var continuation: CheckedContinuation<Void, Never>?
    }

    struct EndTimer {
        let deadline: ContinuousClock.Instant
        let task: Task<Void, Never>
    }

    /// Waits until a request has finished, up to a time limit.
    ///
    /// Cancelling the task or stopping the queue ends the wait.
    ///
    /// - Parameters:
    ///   - id: The request's id.
    ///   - limit: The maximum time to wait. Default: no limit.
    /// - Returns: The state of the request after the wait, finished or not; `nil` if the queue does not know the id.
    /// - Throws: ``QueueError`` of the store.
    public func result(of id: String, within limit: Duration? = nil) async throws -> RequestDetails? {
        try await end(of: id, within: limit)
        return try await request(id)
    }

    /// Waits as ``result(of:within:)`` does. Retains nothing of the request meanwhile.
    package func end(of id: String, within limit: Duration?) async throws {
        let deadline = limit.map { ContinuousClock.now + $0 }
        nextWaiter += 1
        let waiter = nextWaiter
        // Registered before the first look-up, so that no change in between is missed.
        endWaiters[id, default: [:]][waiter] = EndWaiter(deadline: deadline)
        defer { removeEndWaiter(waiter, of: id) }
        armEndTimer(deadline)
        guard phase != .stopped, !hasFailed, try await isUnderWay(id) else { return }
        await suspend(waiter, of: id)
    }

    private func isUnderWay(_ id: String) async throws -> Bool {
        try await store.standings(of: [id])[id]?.state.isFinal == false
    }

    private func removeEndWaiter(_ waiter: Int, of id: String) {
        endWaiters[id]?[waiter] = nil
        if endWaiters[id]?.isEmpty == true { endWaiters[id] = nil }
    }

    /// Returns when the waiter is woken, immediately if it already was.
    private func suspend(_ waiter: Int, of id: String) async {
        guard endWaiters[id]?[waiter]?.isWoken == false else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { endWaiters[id]?[waiter]?.continuation = $0 }
        } onCancel: {
            Task { await self.wake(waiter, of: id) }
        }
    }

    /// Wakes all waiters.
    func wakeEndWaiters() {
        for id in endWaiters.keys { wakeEndWaiters(of: id) }
    }

    private func wakeEndWaiters(of id: String) {
        for waiter in (endWaiters[id] ?? [:]).keys { wake(waiter, of: id) }
    }

    private func wake(_ waiter: Int, of id: String) {
        guard let continuation = endWaiters[id]?[waiter]?.continuation else {
            endWaiters[id]?[waiter]?.isWoken = true
            return
        }
        endWaiters[id]?[waiter]?.continuation = nil
        continuation.resume()
    }
}

// MARK: - Finished requests

extension OfflineQueue {
    /// Called when any request may have finished.
    func recheckEnds() {
        recheckEnds(of: endWaiters.keys)
    }

    /// Called when some requests may have finished. One store query serves all waiters, and calls during a query share
    /// the next one. Otherwise a thousand waiters would cost a busy producer a thousand queries per change.
    func recheckEnds(of ids: some Sequence<String>) {
        endCandidates.formUnion(ids.lazy.filter { self.endWaiters[$0] != nil })
        guard !endCandidates.isEmpty, !isCheckingEnds else { return }
        isCheckingEnds = true
        Task { await self.checkEnds() }
    }

    private func checkEnds() async {
        while !endCandidates.isEmpty {
            let ids = Array(endCandidates)
            endCandidates = []
            // If the query fails, the waiters are woken, query the store themselves and report the error.
            let standings = (try? await store.standings(of: ids)) ?? [:]
            for id in ids where standings[id]?.state.isFinal ?? true { wakeEndWaiters(of: id) }
        }
        isCheckingEnds = false
    }
}

// MARK: - Deadlines

extension OfflineQueue {
    private func armEndTimer(_ deadline: ContinuousClock.Instant?) {
        guard let deadline, endTimer.map({ deadline < $0.deadline }) ?? true else { return }
        endTimer?.task.cancel()
        let task = Task { [weak self] in
            try? await Task.sleep(until: deadline, clock: .continuous)
            if !Task.isCancelled { await self?.endTimerFired() }
        }
        endTimer = EndTimer(deadline: deadline, task: task)
    }

    private func endTimerFired() {
        endTimer = nil
        let now = ContinuousClock.now
        var next: ContinuousClock.Instant?
        for (id, waiters) in endWaiters {
            for (waiter, entry) in waiters {
                guard let deadline = entry.deadline else { continue }
                if deadline <= now { wake(waiter, of: id) } else { next = min(next ?? deadline, deadline) }
            }
        }
        armEndTimer(next)
    }
}

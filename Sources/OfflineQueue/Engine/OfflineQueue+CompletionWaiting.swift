/// Calls that wait until a request has finished.
///
/// A thousand clients may wait at the same time, so each call needs only its suspended task and a `CompletionWaiter`.
/// All deadlines share one timer, because a cancelled `Task.sleep` keeps its memory until its deadline.
extension OfflineQueue {
    /// A call that waits until a request has finished.
    struct CompletionWaiter {
        let deadline: ContinuousClock.Instant?
        /// Whether the call was woken before its task was suspended.
        var isWoken = false
        /// The continuation of the suspended task; `nil` before it is suspended and after it was resumed.
        var continuation: CheckedContinuation<Void, Never>?
    }

    struct CompletionTimer {
        let deadline: ContinuousClock.Instant
        let task: Task<Void, Never>
    }

    /// Waits until a request has finished, and returns its details.
    ///
    /// The wait also ends at the time limit, when the caller's task is cancelled and when the queue stops. The returned
    /// request may then be unfinished.
    ///
    /// - Parameters:
    ///   - id: The request's id.
    ///   - limit: The maximum time to wait. Default `nil`: no limit.
    /// - Returns: The details of the request after the wait; `nil` if the queue does not know the id.
    /// - Throws: ``QueueError`` of the store.
    public func result(of id: String, within limit: Duration? = nil) async throws -> RequestDetails? {
        try await waitUntilFinished(id, within: limit)
        return try await request(id)
    }

    /// Waits in the same way as ``result(of:within:)``, without reading the request's details.
    package func waitUntilFinished(_ id: String, within limit: Duration?) async throws {
        let deadline = limit.map { ContinuousClock.now + $0 }
        nextWaiter += 1
        let waiter = nextWaiter
        // The waiter is registered before the state is read. Otherwise a change right after the read would be missed.
        completionWaiters[id, default: [:]][waiter] = CompletionWaiter(deadline: deadline)
        defer { removeCompletionWaiter(waiter, of: id) }
        armCompletionTimer(deadline)
        guard phase != .stopped, !hasFailed, try await isUnderWay(id) else { return }
        await suspend(waiter, of: id)
    }

    private func isUnderWay(_ id: String) async throws -> Bool {
        try await store.storedStates(of: [id])[id]?.state.isFinal == false
    }

    private func removeCompletionWaiter(_ waiter: Int, of id: String) {
        completionWaiters[id]?[waiter] = nil
        if completionWaiters[id]?.isEmpty == true { completionWaiters[id] = nil }
    }

    /// Suspends the task until the waiter is woken. Returns immediately if it already was.
    private func suspend(_ waiter: Int, of id: String) async {
        guard completionWaiters[id]?[waiter]?.isWoken == false else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { completionWaiters[id]?[waiter]?.continuation = $0 }
        } onCancel: {
            Task { await self.wake(waiter, of: id) }
        }
    }

    /// Wakes all waiters.
    func wakeCompletionWaiters() {
        for id in completionWaiters.keys { wakeCompletionWaiters(of: id) }
    }

    private func wakeCompletionWaiters(of id: String) {
        for waiter in (completionWaiters[id] ?? [:]).keys { wake(waiter, of: id) }
    }

    private func wake(_ waiter: Int, of id: String) {
        guard let continuation = completionWaiters[id]?[waiter]?.continuation else {
            completionWaiters[id]?[waiter]?.isWoken = true
            return
        }
        completionWaiters[id]?[waiter]?.continuation = nil
        continuation.resume()
    }
}

// MARK: - Finished requests

extension OfflineQueue {
    /// Checks all requests that calls wait for, because any of them may have finished.
    func recheckCompletions() {
        recheckCompletions(of: completionWaiters.keys)
    }

    /// Checks the given requests, because they may have finished. Wakes the waiters of those that have.
    ///
    /// One query of the store serves all waiters. Requests that are passed during a query share the next query. With a
    /// query for each waiter, a thousand waiters would cause a thousand queries per change.
    func recheckCompletions(of ids: some Sequence<String>) {
        completionCandidates.formUnion(ids.lazy.filter { self.completionWaiters[$0] != nil })
        guard !completionCandidates.isEmpty, !isCheckingCompletions else { return }
        isCheckingCompletions = true
        Task { await self.checkCompletions() }
    }

    private func checkCompletions() async {
        while !completionCandidates.isEmpty {
            let ids = Array(completionCandidates)
            completionCandidates = []
            // If the query fails, all waiters are woken. Each then queries the store itself and throws the error.
            let storedStates = (try? await store.storedStates(of: ids)) ?? [:]
            for id in ids where storedStates[id]?.state.isFinal ?? true { wakeCompletionWaiters(of: id) }
        }
        isCheckingCompletions = false
    }
}

// MARK: - Deadlines

extension OfflineQueue {
    private func armCompletionTimer(_ deadline: ContinuousClock.Instant?) {
        guard let deadline, completionTimer.map({ deadline < $0.deadline }) ?? true else { return }
        completionTimer?.task.cancel()
        let task = Task { [weak self] in
            try? await Task.sleep(until: deadline, clock: .continuous)
            if !Task.isCancelled { await self?.completionTimerFired() }
        }
        completionTimer = CompletionTimer(deadline: deadline, task: task)
    }

    private func completionTimerFired() {
        completionTimer = nil
        let now = ContinuousClock.now
        var next: ContinuousClock.Instant?
        for (id, waiters) in completionWaiters {
            for (waiter, entry) in waiters {
                guard let deadline = entry.deadline else { continue }
                if deadline <= now { wake(waiter, of: id) } else { next = min(next ?? deadline, deadline) }
            }
        }
        armCompletionTimer(next)
    }
}

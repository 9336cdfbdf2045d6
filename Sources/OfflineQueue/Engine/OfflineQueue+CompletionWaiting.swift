// Calls that wait until a request has finished; see ``CompletionWaiters``.

extension OfflineQueue {
    /// Waits until a request has finished, and returns its details.
    ///
    /// The wait also ends at the time limit, when the caller's task is cancelled and when the queue stops. The returned
    /// request may then be unfinished.
    ///
    /// ```swift
    /// let receipt = try await queue.enqueue(request)
    /// let details = try await queue.result(of: receipt.id, within: .seconds(30))
    /// if details?.summary.state == .delivered { print(details?.response?.status ?? 0) }
    /// ```
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
        // The waiter is registered before the state is read. Otherwise a change right after the read would be missed.
        let waiter = completionWaiters.add(id, deadline: deadline)
        defer { completionWaiters.remove(waiter, of: id) }
        setCompletionTimer(deadline)
        guard phase != .stopped, !hasFailed, try await isUnderWay(id) else { return }
        await suspend(waiter, of: id)
    }

    private func isUnderWay(_ id: String) async throws -> Bool {
        try await store.storedStates(of: [id])[id]?.state.isFinal == false
    }

    /// Suspends the task until the waiter is woken. Returns immediately if it already was.
    private func suspend(_ waiter: Int, of id: String) async {
        guard completionWaiters.mustWait(waiter, of: id) else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { completionWaiters.suspend(waiter, of: id, $0) }
        } onCancel: {
            Task { await self.wake(waiter, of: id) }
        }
    }

    private func wake(_ waiter: Int, of id: String) { completionWaiters.wake(waiter, of: id) }

    // MARK: Finished requests

    /// Checks all requests that calls wait for, because any of them may have finished.
    func recheckCompletions() {
        recheckCompletions(of: completionWaiters.ids)
    }

    /// Checks the given requests, because they may have finished. Wakes the waiters of those that have.
    ///
    /// One query of the store serves all waiters. Requests that are passed during a query share the next query. With a
    /// query for each waiter, a thousand waiters would cause a thousand queries per change.
    func recheckCompletions(of ids: some Sequence<String>) {
        guard completionWaiters.mark(ids) else { return }
        Task { await self.checkCompletions() }
    }

    private func checkCompletions() async {
        while let ids = completionWaiters.takeCandidates() {
            // If the query fails, all waiters are woken. Each then queries the store itself and throws the error.
            let storedStates = (try? await store.storedStates(of: ids)) ?? [:]
            for id in ids where storedStates[id]?.state.isFinal ?? true { completionWaiters.wakeAll(of: id) }
        }
    }

    // MARK: Deadlines

    private func setCompletionTimer(_ deadline: ContinuousClock.Instant?) {
        completionWaiters.setTimer(deadline) { deadline in
            Task { [weak self] in
                try? await Task.sleep(until: deadline, clock: .continuous)
                if !Task.isCancelled { await self?.completionTimerFired() }
            }
        }
    }

    private func completionTimerFired() {
        setCompletionTimer(completionWaiters.timerFired(at: .now))
    }
}

/// A request of this queue whose response a caller of this process waits for. Its attempts keep more of the response
/// than the store does.
struct AwaitedResponse {
    /// How the request ended, if an attempt of this process ended it.
    struct Conclusion: Sendable {
        let verdict: Verdict
        let response: RecordedResponse?
    }

    /// The maximum number of body bytes that the caller accepts.
    let limit: Int
    var conclusion: Conclusion?
}

extension OfflineQueue {
    /// Whether the queue still writes, so that stored requests can finish in this process.
    var isOpen: Bool { phase != .stopped && !hasFailed }

    /// Keeps the response to a request for ``takeResponse(to:)``. Must be called before the request is enqueued.
    func expectResponse(to id: String, upTo limit: Int) {
        awaitedResponses[id] = AwaitedResponse(limit: limit)
    }

    /// Returns how the request ended, if an attempt of this process ended it, and forgets the request.
    func takeResponse(to id: String) -> AwaitedResponse.Conclusion? {
        awaitedResponses.removeValue(forKey: id)?.conclusion
    }

    /// Drops a kept response whose outcome could not be stored.
    func dropResponse(to id: String) {
        awaitedResponses[id]?.conclusion = nil
    }

    func keepResponse(to id: String, _ verdict: Verdict, _ outcome: AttemptOutcome?) {
        guard let limit = awaitedResponses[id]?.limit else { return }
        switch verdict {
        case .delivered, .dead:
            awaitedResponses[id]?.conclusion = AwaitedResponse.Conclusion(
                verdict: verdict,
                response: outcome?.response(upTo: limit)
            )
        case .retry, .held: break
        }
    }
}

/// The calls that wait until a request has finished, by the ids of the requests.
///
/// A thousand clients may wait at the same time, so each call needs only its suspended task and an entry here. All
/// deadlines share one timer, because a cancelled `Task.sleep` keeps its memory until its deadline.
struct CompletionWaiters {
    private struct Waiter {
        let deadline: ContinuousClock.Instant?
        /// Whether the call was woken before its task was suspended.
        var isWoken = false
        /// The continuation of the suspended task; `nil` before it is suspended and after it was resumed.
        var continuation: CheckedContinuation<Void, Never>?
    }

    private var waiters: [String: [Int: Waiter]] = [:]
    private var nextNumber = 0
    private var timer: (deadline: ContinuousClock.Instant, task: Task<Void, Never>)?
    /// The ids of requests with waiters that may have finished.
    private var candidates: Set<String> = []
    private var isChecking = false

    /// The ids of the requests that calls wait for.
    var ids: some Sequence<String> { waiters.keys }

    /// Adds a waiter, and returns its number.
    mutating func add(_ id: String, deadline: ContinuousClock.Instant?) -> Int {
        nextNumber += 1
        waiters[id, default: [:]][nextNumber] = Waiter(deadline: deadline)
        return nextNumber
    }

    mutating func remove(_ waiter: Int, of id: String) {
        waiters[id]?[waiter] = nil
        if waiters[id]?.isEmpty == true { waiters[id] = nil }
    }

    /// Whether the waiter has not been woken yet.
    func mustWait(_ waiter: Int, of id: String) -> Bool { waiters[id]?[waiter]?.isWoken == false }

    /// Sets the continuation that ``wake(_:of:)`` resumes.
    mutating func suspend(_ waiter: Int, of id: String, _ continuation: CheckedContinuation<Void, Never>) {
        waiters[id]?[waiter]?.continuation = continuation
    }

    mutating func wake(_ waiter: Int, of id: String) {
        guard let continuation = waiters[id]?[waiter]?.continuation else {
            waiters[id]?[waiter]?.isWoken = true
            return
        }
        waiters[id]?[waiter]?.continuation = nil
        continuation.resume()
    }

    /// Wakes all waiters of a request.
    mutating func wakeAll(of id: String) {
        for waiter in (waiters[id] ?? [:]).keys { wake(waiter, of: id) }
    }

    /// Wakes all waiters of all requests.
    mutating func wakeAll() {
        for id in waiters.keys { wakeAll(of: id) }
    }

    // MARK: Finished requests

    /// Records that requests may have finished. Ignores those without waiters.
    ///
    /// - Returns: Whether the caller must start a check, which takes the requests with ``takeCandidates()``.
    mutating func mark(_ ids: some Sequence<String>) -> Bool {
        for id in ids where waiters[id] != nil { candidates.insert(id) }
        guard !candidates.isEmpty, !isChecking else { return false }
        isChecking = true
        return true
    }

    /// Removes and returns the requests to check. `nil` if there are none, which ends the check.
    mutating func takeCandidates() -> [String]? {
        guard !candidates.isEmpty else {
            isChecking = false
            return nil
        }
        defer { candidates = [] }
        return Array(candidates)
    }

    // MARK: Deadlines

    /// Sets the timer to a deadline, unless it is set to an earlier one or there is no deadline.
    ///
    /// - Parameter start: Starts the task of the timer, which calls ``timerFired(at:)`` at the deadline.
    mutating func setTimer(
        _ deadline: ContinuousClock.Instant?,
        _ start: (ContinuousClock.Instant) -> Task<Void, Never>
    ) {
        guard let deadline, timer.map({ deadline < $0.deadline }) ?? true else { return }
        timer?.task.cancel()
        timer = (deadline, start(deadline))
    }

    /// Wakes the waiters whose deadlines have passed.
    ///
    /// - Returns: The deadline to set the timer to; `nil` if no waiter has one.
    mutating func timerFired(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        timer = nil
        var next: ContinuousClock.Instant?
        for (id, entries) in waiters {
            for (waiter, entry) in entries {
                guard let deadline = entry.deadline else { continue }
                if deadline <= now { wake(waiter, of: id) } else { next = min(next ?? deadline, deadline) }
            }
        }
        return next
    }
}

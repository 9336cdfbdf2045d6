internal import Foundation

/// Those who wait: for a first result, and for the end.
extension OfflineQueue {
    /// A call of ``send(_:options:)``. Before its request is known to be on the disk it has no continuation,
    /// and a result that comes early is kept.
    struct Waiter {
        var lane: Int64?
        var continuation: CheckedContinuation<SendResult, Never>?
        var earlyResult: SendResult?
    }

    /// What is known of the result without an attempt.
    func immediateResult(_ accepted: EnqueuedRequest) -> SendResult? {
        let id = accepted.id
        guard accepted.outcome == .accepted else { return knownResult(accepted) }
        if accepted.state == .blocked { return .queued(id: id, reason: .blocked) }
        if phase != .running { return .queued(id: id, reason: .stopped) }
        if accepted.lane.isPaused { return .queued(id: id, reason: .paused) }
        if accepted.isScheduled { return .queued(id: id, reason: .scheduled) }
        if accepted.lane.key.mode == .fifo, accepted.isBehindOthers {
            return .queued(id: id, reason: .behindEarlier)
        }
        return nil
    }

    private func knownResult(_ accepted: EnqueuedRequest) -> SendResult {
        let id = accepted.id
        if accepted.outcome == .dropped { return .dropped(id: id) }
        guard accepted.state.isFinal else { return .queued(id: id, reason: .alreadyQueued) }
        return SendResult(id: id, accepted.state, status: accepted.status, accepted.lastError)
    }

    func firstResult(_ accepted: EnqueuedRequest) async -> SendResult {
        let id = accepted.id
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let result = waiters[id]?.earlyResult {
                    waiters[id] = nil
                    return continuation.resume(returning: result)
                }
                waiters[id] = Waiter(lane: accepted.lane.id, continuation: continuation)
                announce([accepted.lane])
            }
        } onCancel: {
            Task { await self.answer(id, .queued(id: id, reason: .cancelled)) }
        }
    }

    func answer(_ id: String, _ result: SendResult) {
        guard let continuation = waiters[id]?.continuation else {
            if waiters[id]?.earlyResult == nil { waiters[id]?.earlyResult = result }
            return
        }
        waiters[id] = nil
        continuation.resume(returning: result)
    }

    /// Answers those whose requests came to an end, or are held, by something else than an attempt.
    func answerWithoutAttempt() async {
        recheckEnds()
        for id in Array(waiters.keys) {
            guard let request = (try? await store.details(of: id))?.summary else { continue }
            if let reason = request.holdReason {
                answer(id, .queued(id: id, reason: .held(reason)))
            } else if request.state.isFinal {
                answer(id, SendResult(id: id, request.state, status: request.status, request.lastError))
            }
        }
    }

    func answerPaused(_ lane: Int64) {
        let sending = Set(inflight.values.map(\.id))
        for (id, waiter) in waiters where waiter.lane == lane && !sending.contains(id) {
            answer(id, .queued(id: id, reason: .paused))
        }
    }

    /// Answers those whose requests cannot be tried now.
    func answerObstructed() {
        guard !waiters.isEmpty else { return }
        let sending = Set(inflight.values.map(\.id))
        for (id, waiter) in waiters where !sending.contains(id) {
            guard let lane = waiter.lane, let reason = scheduler.obstacle(toLane: lane, now: now) else {
                continue
            }
            answer(id, .queued(id: id, reason: reason))
        }
    }
}

extension SendResult {
    /// Of a request that is over.
    fileprivate init(id: String, _ state: QueuedRequest.State, status: Int?, _ error: String?) {
        self =
            state == .delivered
            ? .delivered(id: id, status: status ?? 0, body: Data())
            : .dead(id: id, reason: error ?? state.rawValue)
    }
}

extension EnqueuedRequest {
    /// A little ahead is the clock's grain.
    fileprivate var isScheduled: Bool { (due ?? .zero) > .milliseconds(1) }
}

// MARK: - The end of a request

extension OfflineQueue {
    /// Waits until a request is over, at most for so long.
    ///
    /// Cancelling the task ends the waiting. So does the end of the queue.
    ///
    /// - Parameters:
    ///   - id: The request's id.
    ///   - limit: How long to wait at most. Default: for ever.
    /// - Returns: What is known of it then, be it over or not; `nil` when the queue does not know the id.
    /// - Throws: ``QueueError`` of the store.
    public func result(of id: String, within limit: Duration? = nil) async throws -> RequestDetails? {
        try await end(of: id, within: limit)
        return try await request(id)
    }

    /// Waits as ``result(of:within:)`` does. Retains nothing of the request meanwhile.
    package func end(of id: String, within limit: Duration?) async throws {
        let deadline = limit.map { ContinuousClock.now + $0 }
        while true {
            nextWaiter += 1
            let waiter = nextWaiter
            // Registered before the look, so that nothing that happens in between is missed.
            let signal = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            endWaiters[id, default: [:]][waiter] = signal.continuation
            defer { removeEndWaiter(waiter, of: id) }
            guard try await isUnderWay(id), phase != .stopped, !hasFailed, !Task.isCancelled,
                deadline.map({ $0 > .now }) ?? true
            else { return }
            await Self.wait(for: signal.stream, until: deadline)
        }
    }

    private func isUnderWay(_ id: String) async throws -> Bool {
        try await store.details(of: id)?.summary.state.isFinal == false
    }

    private func removeEndWaiter(_ waiter: Int, of id: String) {
        endWaiters[id]?[waiter] = nil
        if endWaiters[id]?.isEmpty == true { endWaiters[id] = nil }
    }

    private static func wait(for signal: AsyncStream<Void>, until deadline: ContinuousClock.Instant?) async {
        await withTaskGroup { group in
            group.addTask { for await _ in signal { return } }
            if let deadline { group.addTask { try? await Task.sleep(until: deadline, clock: .continuous) } }
            await group.next()
            group.cancelAll()
        }
    }

    func recheckEnd(of id: String) {
        for waiter in (endWaiters[id] ?? [:]).values { waiter.yield() }
    }

    func recheckEnds() {
        endWaiters = endWaiters.filter { !$0.value.isEmpty }
        for id in endWaiters.keys { recheckEnd(of: id) }
    }

    func endAllWaiting() {
        for waiters in endWaiters.values {
            for waiter in waiters.values { waiter.finish() }
        }
    }
}

// MARK: - The end of the queue

extension OfflineQueue {
    struct Drain {
        var waiter: CheckedContinuation<Void, Never>?
        var isGivenUp = false
    }

    /// Waits until nothing is being sent or claimed.
    func drained(within limit: Duration) async {
        let deadline = Task {
            try? await Task.sleep(for: limit)
            self.finishedOne { $0.drain.isGivenUp = true }
        }
        while !isDrained {
            await withCheckedContinuation { drain.waiter = $0 }
        }
        deadline.cancel()
    }

    func finishedOne(_ change: (isolated OfflineQueue) -> Void) {
        change(self)
        guard isDrained, let waiter = drain.waiter else { return }
        drain.waiter = nil
        waiter.resume()
    }

    private var isDrained: Bool {
        drain.isGivenUp || (inflight.isEmpty && claimsUnderWay == 0)
    }
}

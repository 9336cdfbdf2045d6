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
        guard !waiters.isEmpty, let standings = try? await store.standings(of: Array(waiters.keys)) else {
            return
        }
        for (id, request) in standings {
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

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
    func immediateResult(_ id: String, _ accepted: EnqueuedRequest) -> SendResult? {
        switch accepted.state {
        case .delivered: return .delivered(id: id, status: accepted.status ?? 0, body: .init())
        case .dead: return .dead(id: id, reason: accepted.lastError ?? "")
        case _ where !accepted.isNew: return .queued(id: id, reason: .alreadyQueued)
        case _ where phase != .running: return .queued(id: id, reason: .stopped)
        case _ where accepted.lane.key.mode == .fifo && accepted.isBehindOthers:
            return .queued(id: id, reason: .behindEarlier)
        default: return nil
        }
    }

    func firstResult(of id: String, _ accepted: EnqueuedRequest) async -> SendResult {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let result = waiters[id]?.earlyResult {
                    waiters[id] = nil
                    return continuation.resume(returning: result)
                }
                waiters[id] = Waiter(lane: accepted.lane.id, continuation: continuation)
                announce(accepted)
            }
        } onCancel: {
            Task { await self.answer(id, .queued(id: id, reason: .cancelled)) }
        }
    }

    func answer(_ id: String, _ result: SendResult) {
        guard let continuation = waiters[id]?.continuation else {
            waiters[id]?.earlyResult = result
            return
        }
        waiters[id] = nil
        continuation.resume(returning: result)
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

// MARK: - The end

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

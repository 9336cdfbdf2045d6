internal import Foundation

/// Calls that wait for the first result of a request, or for the end of the requests in flight.
extension OfflineQueue {
    /// A call of ``send(_:options:)``.
    struct SendWaiter {
        var lane: Int64?
        /// The continuation of the call; `nil` until the request is on disk and the call begins to wait.
        var continuation: CheckedContinuation<SendResult, Never>?
        /// A result that arrived while there was no continuation.
        var earlyResult: SendResult?
        /// When the call ends its wait for a slot; `nil` until it waits for one.
        var slotDeadline: Moment?
        /// When the attempt is due that confirms a refusal; `nil` if none was refused.
        var confirmationDue: Moment?
    }

    /// The longest delay before the confirmation of a refusal for which a call waits. With the default backoff, the delay is
    /// 4 to 6 s.
    private static var longestConfirmation: Duration { .seconds(10) }

    /// Returns whether the caller of `send` waits for another attempt, because the server refused the request and that
    /// must be confirmed. It waits for one such attempt.
    func awaitsConfirmation(_ id: String, _ classification: AttemptClassification, due: Moment) -> Bool {
        guard classification.isRetriedForConfirmation, let waiter = sendWaiters[id],
            waiter.confirmationDue == nil, due - now <= Self.longestConfirmation
        else { return false }
        sendWaiters[id]!.confirmationDue = due
        return true
    }

    /// Returns the result if the call need not wait, because no attempt can start now or because the queue already knew
    /// the id. Otherwise returns `nil`.
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
                if let result = sendWaiters[id]?.earlyResult {
                    sendWaiters[id] = nil
                    return continuation.resume(returning: result)
                }
                var waiter = sendWaiters[id] ?? SendWaiter()
                (waiter.lane, waiter.continuation) = (accepted.lane.id, continuation)
                sendWaiters[id] = waiter
                announce([accepted.lane])
            }
        } onCancel: {
            Task { await self.resolve(id, .queued(id: id, reason: .cancelled)) }
        }
    }

    func resolve(_ id: String, _ result: SendResult) {
        guard let continuation = sendWaiters[id]?.continuation else {
            if sendWaiters[id]?.earlyResult == nil { sendWaiters[id]?.earlyResult = result }
            return
        }
        sendWaiters[id] = nil
        continuation.resume(returning: result)
    }

    /// Resumes the callers whose requests are finished or held according to the store, for example after a
    /// cancellation by another caller.
    ///
    /// - Parameter changed: The requests that may have changed. Default `nil`: any.
    func resolveFinished(_ changed: [String]? = nil) async {
        if let changed { recheckCompletions(of: changed) } else { recheckCompletions() }
        let ids = changed?.filter { sendWaiters[$0] != nil } ?? Array(sendWaiters.keys)
        guard !ids.isEmpty, let storedStates = try? await store.storedStates(of: ids) else { return }
        for (id, request) in storedStates {
            if let reason = request.holdReason {
                resolve(id, .queued(id: id, reason: .held(reason)))
            } else if request.state.isFinal {
                resolve(id, SendResult(id: id, request.state, status: request.status, request.lastError))
            }
        }
    }

    func resolvePaused(_ lane: Int64) {
        let sending = Set(inflight.values.map(\.id))
        for (id, waiter) in sendWaiters where waiter.lane == lane && !sending.contains(id) {
            resolve(id, .queued(id: id, reason: .paused))
        }
    }

    /// Resumes the callers whose requests cannot be tried now, with the reason.
    ///
    /// - Returns: When to call this method again, because a call has then waited for a slot for too long.
    func resolveDelayed() -> Moment? {
        guard !sendWaiters.isEmpty else { return nil }
        let now = now
        let sending = Set(inflight.values.map(\.id))
        var reasons: [Int64: QueuedReason?] = [:]
        var next: Moment?
        for (id, waiter) in sendWaiters {
            guard let lane = waiter.lane, !sending.contains(id) else {
                sendWaiters[id]?.slotDeadline = nil
                continue
            }
            if let due = waiter.confirmationDue, now < due {
                next = min(next ?? due, due)
                continue
            }
            let reason = reasons[lane] ?? scheduler.waitReason(ofLane: lane, now: now)
            reasons[lane] = .some(reason)
            guard let reason else { continue }
            let slotDeadline = waiter.slotDeadline ?? now + configuration.slotTimeout
            let deadline = reason == .noFreeSlot ? slotDeadline : now
            guard now < deadline else {
                resolve(id, .queued(id: id, reason: reason))
                continue
            }
            sendWaiters[id]?.slotDeadline = deadline
            next = min(next ?? deadline, deadline)
        }
        return next
    }
}

extension SendResult {
    /// Creates the result of a finished request.
    fileprivate init(id: String, _ state: QueuedRequest.State, status: Int?, _ error: String?) {
        self =
            state == .delivered
            ? .delivered(id: id, status: status ?? 0, body: Data())
            : .dead(id: id, reason: error ?? state.rawValue)
    }
}

extension EnqueuedRequest {
    /// Whether the request must wait for its scheduled time. A time up to 1 ms ahead does not count: it results from
    /// the resolution of timestamps.
    fileprivate var isScheduled: Bool { (due ?? .zero) > .milliseconds(1) }
}

// MARK: - Stopping

extension OfflineQueue {
    struct Drain {
        var waiter: CheckedContinuation<Void, Never>?
        var isGivenUp = false
    }

    /// Waits until no request is in flight or being claimed, but no longer than `limit`.
    func drained(within limit: Duration) async {
        drain.isGivenUp = false
        let deadline = Task {
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            self.finishedOne { $0.drain.isGivenUp = true }
        }
        while !isDrained {
            await withCheckedContinuation { drain.waiter = $0 }
        }
        deadline.cancel()
        // A deadline that has just passed must not end the next wait.
        await deadline.value
    }

    func finishedOne(_ change: (isolated OfflineQueue) -> Void) {
        change(self)
        guard isDrained, let waiter = drain.waiter else { return }
        drain.waiter = nil
        waiter.resume()
    }

    private var isDrained: Bool {
        drain.isGivenUp || (inflight.isEmpty && claimsInProgress == 0)
    }
}

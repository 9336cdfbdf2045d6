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

/// Watches: the states of the gates that the scheduler wants to know.
extension OfflineQueue {
    /// A watch of an endpoint's gate.
    struct EndpointWatch {
        /// A number that no other watch has. States of earlier watches of the endpoint are ignored.
        let number: UInt64
        /// `nil` if the state never changes.
        let watch: (any GateWatch)?

        func end() { watch?.cancel() }
    }

    func watch(_ endpoint: Endpoint) {
        lastWatch += 1
        let watch = gate.watch(endpoint) { [gateChanges, number = lastWatch] state in
            gateChanges.post(GateChanges.Change(endpoint: endpoint, watch: number, state: state))
        }
        watches[endpoint] = EndpointWatch(number: lastWatch, watch: watch)
    }

    /// Passes the states of all gates to the scheduler, until the queue stops.
    func followGates() async {
        while phase == .running {
            let changes = await gateChanges.next()
            guard !changes.isEmpty else { return }
            for change in changes { gateChanged(change) }
        }
    }

    private func gateChanged(_ change: GateChanges.Change) {
        guard phase == .running, watches[change.endpoint]?.number == change.watch else { return }
        handle(.gate(change.endpoint, change.state))
    }
}

/// Probes by others that show which servers respond.
extension OfflineQueue {
    /// Ends the delays of requests to origins to which a probe has succeeded, if their last attempts got no response.
    ///
    /// Such delays are pointless when the server responds again. Other delays continue, such as those by `Retry-After`.
    package func probeSucceeded(_ origins: [Origin]) {
        guard phase == .running, scheduler.awaitsResponse(of: origins) else { return }
        handle(.probeSucceeded(origins))
    }
}

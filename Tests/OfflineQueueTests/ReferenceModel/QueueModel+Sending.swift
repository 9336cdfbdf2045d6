internal import Foundation
internal import OfflineQueue

/// Sending and editing in the model.
extension QueueModel {
    mutating func claim(_ lane: LaneKey, _ limit: Int, releasing: Set<HoldReason>?, token: String)
        -> [String]
    {
        beginChange()
        guard lanes[lane] != nil else { return [] }
        if let releasing { release(releasing, lane: lane) }
        guard !isPaused, lanes[lane]?.isPaused != true else { return [] }
        if releasing != nil { bringForward(lane, to: clock.wall) }
        let taken = lane.mode == .fifo ? takeHead(lane, limit) : take(lane, limit)
        for id in taken {
            change(id) { request in
                request.state = .inflight
                request.attempts += 1
                request.token = token
            }
        }
        if taken.isEmpty {
            bringForward(lane, to: clock.wall + settings.longestDelay.components.seconds * 1000)
        }
        return taken
    }

    private mutating func takeHead(_ lane: LaneKey, _ limit: Int) -> [String] {
        guard limit > 0, let head = live.first(where: { $0.lane == lane }), isDue(head) else { return [] }
        guard isExpired(head) else { return [head.id] }
        end(head.id, .dead, error: "time to live exceeded")
        return []
    }

    private mutating func take(_ lane: LaneKey, _ limit: Int) -> [String] {
        let waiting = live.filter { $0.lane == lane && isDue($0) }
            .sorted { (rank($0), $0.priority, $0.place) < (rank($1), $1.priority, $1.place) }
        var taken: [String] = []
        for request in waiting where taken.count < limit {
            if isExpired(request) {
                end(request.id, .dead, error: "time to live exceeded")
            } else {
                taken.append(request.id)
            }
        }
        return taken
    }

    /// The due time of a request, plus the time that it must wait to go before a request of priority 0.
    private func rank(_ request: Request) -> Int64 {
        request.due + Int64(request.priority) * settings.ageingStep.components.seconds * 1000
    }

    private func isDue(_ request: Request) -> Bool { request.state == .pending && request.due <= clock.wall }

    /// Makes the pending requests of a lane due at `latest`, unless they are due earlier, but not before their
    /// scheduled time.
    private mutating func bringForward(_ lane: LaneKey, to latest: Int64) {
        for request in live where request.lane == lane && request.state == .pending {
            let asked = request.scheduled ?? 0
            if request.due > latest, request.due > asked {
                change(request.id) { $0.due = max(latest, asked) }
            }
        }
    }

    /// Applies the outcome of an attempt. Returns `false` if the token is not that of the current lease.
    mutating func conclude(_ id: String, _ conclusion: Conclusion) -> Bool {
        beginChange()
        guard let index = index(of: id), live[index].state == .inflight, live[index].token == conclusion.token
        else { return false }
        let lane = live[index].lane
        if let closure = conclusion.laneClosure {
            let length = min(closure, settings.longestClosure).components.seconds * 1000
            lanes[lane]!.closure = Closure(end: clock.sinceBoot + length, length: length)
        }
        apply(conclusion, to: live[index])
        return true
    }

    private mutating func apply(_ conclusion: Conclusion, to request: Request) {
        let id = request.id
        switch conclusion.verdict {
        case .delivered: end(id, .delivered, conclusion)
        case .dead(_, let reason): end(id, .dead, error: reason, conclusion)
        case .held(let reason):
            if reason == .auth {
                change(id) { request in
                    request.attempts -= 1
                    request.deferrals += 1
                }
            }
            comeBack(id, to: .held, reason, due: 0, conclusion)
        case .retry(let counts):
            if !counts {
                change(id) { request in
                    request.attempts -= 1
                    request.deferrals += 1
                }
            } else if let most = request.maximumAttempts, request.attempts >= most {
                let times = request.attempts == 1 ? "time" : "times"
                let cause = conclusion.detail.map { ": \($0)" } ?? ""
                return end(id, .dead, error: "failed \(request.attempts) \(times)\(cause)", conclusion)
            }
            let closure = min(conclusion.laneClosure ?? .zero, settings.longestClosure)
            let delay = min(conclusion.delay, max(settings.longestDelay, closure)).components.seconds * 1000
            comeBack(id, to: .pending, nil, due: clock.wall + delay, conclusion)
        }
    }

    /// Ends an attempt whose verdict does not finish the request. A pending edit or a newer request with the same
    /// replace key may still finish it.
    mutating func comeBack(
        _ id: String,
        to state: QueuedRequest.State,
        _ reason: HoldReason?,
        due: Int64,
        _ conclusion: Conclusion? = nil
    ) {
        let request = live[index(of: id)!]
        if request.pendingEdit == .cancel { return end(id, .cancelled, conclusion) }
        let isHeldByUser = request.pendingEdit == .hold && !(state == .held && reason == .ambiguous)
        let rival = live.first { other in
            other.id != id && other.lane == request.lane && other.state != .inflight
                && request.replaceKey != nil && other.replaceKey == request.replaceKey
        }
        if let rival, rival.place > request.place {
            if rival.waitsForEndOf == id { letGo(rival.id) }
            passDependents(of: id, to: rival.id)
            return end(id, .superseded, conclusion)
        }
        if let rival {
            passDependents(of: rival.id, to: id)
            end(rival.id, .superseded)
        }
        change(id) { request in
            request.state = isHeldByUser ? .held : state
            request.reason = isHeldByUser ? .user : state == .held ? reason : nil
            if request.state == .pending { request.due = due }
            request.token = nil
            request.pendingEdit = nil
            request.status = conclusion?.status ?? request.status
            request.lastError = conclusion?.detail ?? request.lastError
        }
    }
}

// MARK: - Edits

extension QueueModel {
    mutating func edit(_ edit: QueueEdit, _ id: String) -> EditResult {
        beginChange()
        guard let request = live.first(where: { $0.id == id }) else { return editHistory(edit, id) }
        switch (edit, request.state) {
        case (.cancel, .inflight): change(id) { $0.pendingEdit = .cancel }
        case (.cancel, _):
            end(id, .cancelled)
            return .done(.cancelled)
        case (.hold, .inflight): change(id) { $0.pendingEdit = $0.pendingEdit ?? .hold }
        case (.hold, .held):
            if [.trust, .configuration, .auth].contains(request.reason) { change(id) { $0.reason = .user } }
        case (.hold, _):
            change(id) { request in
                request.state = .held
                request.reason = .user
            }
        case (.release, .inflight) where request.pendingEdit == .hold: change(id) { $0.pendingEdit = nil }
        case (.release, .held):
            if request.reason == .dependency { waitForNothing(id) }
            free(id)
        case (.retry(let newKey, _), .held), (.retry(let newKey, _), .pending),
            (.retry(let newKey, _), .blocked):
            change(id) { $0.scheduled = nil }
            startOver(id, newKey: newKey)
        default: return .refused(request.state)
        }
        return .done(live[index(of: id)!].state)
    }

    /// Edits all requests that match before the first edit, one after another.
    mutating func edit(_ edit: QueueEdit, matching filter: RequestFilter) -> FilteredEditResult {
        beginChange()
        let matching = (live + history).sorted { $0.place < $1.place }.filter { request in
            filter.states?.contains(request.state) ?? true
                && request.lane.origin.host == filter.host ?? request.lane.origin.host
                && request.lane.label == filter.lane ?? request.lane.label
        }
        let isLive = Set(live.map(\.id))
        // The store edits unfinished requests before finished ones.
        let ordered = matching.filter { isLive.contains($0.id) } + matching.filter { !isLive.contains($0.id) }
        var result = FilteredEditResult()
        for request in ordered {
            if case .done = self.edit(edit, request.id) { result.done += 1 } else { result.refused += 1 }
        }
        return result
    }

    private mutating func waitForNothing(_ id: String) {
        change(id) { request in
            request.waitsFor = []
            request.waitsForEndOf = nil
        }
    }

    private mutating func startOver(_ id: String, newKey: Bool) {
        let (clock, followed) = (self.clock, self.followed)
        waitForNothing(id)
        change(id) { request in
            (request.boot, request.bootEnd) = (clock.boot, clock.sinceBoot + request.life)
            request.wallEnd = request.bootEnd + followed
            request.state = .pending
            request.reason = nil
            request.due = clock.wall
            request.attempts = 0
            request.deferrals = 0
            if newKey, request.key != nil { request.key = "" }
        }
    }

    private mutating func editHistory(_ edit: QueueEdit, _ id: String) -> EditResult {
        guard let past = history.firstIndex(where: { $0.id == id }) else { return .unknown }
        var request = history[past]
        if edit == .cancel, request.state == .dead {
            history[past].state = .cancelled
            history[past].position = nextEnd()
            history[past].finish(at: clock)
            history[past].kept -= request.bodyBytes
            return .done(.cancelled)
        }
        guard case .retry(let newKey, _) = edit, request.state == .dead else {
            return .refused(request.state)
        }
        let isTaken = live.contains {
            $0.lane == request.lane && $0.state != .inflight && request.replaceKey != nil
                && $0.replaceKey == request.replaceKey
        }
        if lanes[request.lane] == nil { lanes[request.lane] = Lane() }
        guard !isTaken else { return .refused(.dead) }
        history.remove(at: past)
        request.scheduled = nil
        request.finished = nil
        live.insert(request, at: live.firstIndex { $0.place > request.place } ?? live.count)
        startOver(id, newKey: newKey)
        return .done(.pending)
    }
}

internal import Foundation
internal import OfflineQueue

/// Enqueuing in the model.
extension QueueModel {
    mutating func enqueue(_ requests: [NewRequest]) -> Result<[Receipt.Outcome], QueueError> {
        beginChange()
        var changed = self
        do {
            let outcomes = try changed.accept(requests)
            self = changed
            return .success(outcomes)
        } catch {
            return .failure(error)
        }
    }

    private mutating func accept(_ requests: [NewRequest]) throws(QueueError) -> [Receipt.Outcome] {
        try refuseCircle(requests)
        let batch = Set(requests.map(\.id))
        var outcomes: [Receipt.Outcome] = []
        var late = Late()
        for new in requests { outcomes.append(try accept(new, batch, &late)) }
        for (id, missing) in late.missing {
            // The missing dependency is a later request of the batch that was dropped or replaced, or it was dropped to
            // make room for this request.
            for needed in missing where index(of: needed) == nil { lost(needed, for: id) }
        }
        for (old, new) in late.replacements { passDependents(of: old, to: new) }
        for (_, new) in late.replacements where index(of: new) == nil {
            for dependent in live where dependent.waitsFor.contains(new) { lost(new, for: dependent.id) }
        }
        return outcomes
    }

    /// The changes that can be made only after the whole batch is accepted.
    private struct Late {
        var missing: [(id: String, needed: Set<String>)] = []
        var replacements: [(old: String, new: String)] = []
    }

    private func refuseCircle(_ requests: [NewRequest]) throws(QueueError) {
        var (needed, last) = ([String: [String]](), [LaneKey: String]())
        for request in requests where needed[request.id] == nil {
            needed[request.id] = request.options.dependencies
            // In a FIFO lane, each request also waits for the request before it.
            if request.lane.mode == .fifo, let before = last.updateValue(request.id, forKey: request.lane) {
                needed[request.id]!.append(before)
            }
        }
        if requests.allSatisfy({ $0.options.dependencies.isEmpty }) { return }
        func reaches(_ id: String, _ path: Set<String>) -> Bool {
            if path.contains(id) { return true }
            return (needed[id] ?? []).contains { reaches($0, path.union([id])) }
        }
        if needed.keys.contains(where: { reaches($0, []) }) { throw QueueError(.cyclicDependency) }
    }

    private mutating func accept(
        _ new: NewRequest,
        _ batch: Set<String>,
        _ late: inout Late
    ) throws(QueueError) -> Receipt.Outcome {
        if let known = (live + history).first(where: { $0.id == new.id }) {
            guard known.content == new.content else { throw QueueError(.idConflict) }
            return .known
        }
        if lanes[new.lane] == nil { lanes[new.lane] = Lane() }
        let needed = try undelivered(new, batch)
        let old = live.first {
            $0.lane == new.lane && $0.replaceKey != nil && $0.replaceKey == new.options.replaceKey
                && $0.state != .inflight
        }
        let sent = live.first {
            $0.lane == new.lane && $0.replaceKey != nil && $0.replaceKey == new.options.replaceKey
                && $0.state == .inflight
        }
        for rival in [old, sent].compactMap({ $0 }) where new.options.dependencies.contains(rival.id) {
            throw QueueError(.cyclicDependency)
        }
        guard try freeCapacity(new, replacing: old?.id) else { return .dropped }
        if let old { end(old.id, .superseded) }
        live.append(request(new, needed, sent?.id))
        late.missing.append((new.id, needed.filter { index(of: $0) == nil }))
        if let old { late.replacements.append((old.id, new.id)) }
        return .accepted
    }

    private func undelivered(_ new: NewRequest, _ batch: Set<String>) throws(QueueError) -> Set<String> {
        var needed: Set<String> = []
        for id in new.options.dependencies {
            let past = history.first { $0.id == id }?.state
            if past == .delivered { continue }
            guard past == nil, batch.contains(id) || index(of: id) != nil else {
                throw QueueError(.unknownDependency)
            }
            needed.insert(id)
        }
        return needed
    }

    private mutating func request(_ new: NewRequest, _ needed: Set<String>, _ sent: String?) -> Request {
        let options = new.options
        let ttl = options.timeToLive.components
        let life = ttl.seconds * 1000 + ttl.attoseconds / 1_000_000_000_000_000
        let scheduled = options.notBefore.map { max(clock.wall, Timestamp($0).milliseconds) }
        let isIdempotent = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"].contains(new.method)
        return Request(
            id: new.id,
            content: new.content,
            lane: new.lane,
            priority: options.priority,
            size: new.size,
            bodyBytes: new.body.size,
            created: clock.wall,
            life: life,
            replaceKey: options.replaceKey,
            maximumAttempts: options.maximumAttempts,
            mayBeSentTwice: (isIdempotent || new.key != nil) && !options.isAtMostOnce,
            key: new.key?.value,
            state: needed.isEmpty && sent == nil ? .pending : .blocked,
            due: scheduled ?? clock.wall,
            scheduled: scheduled,
            waitsFor: needed,
            waitsForEndOf: sent,
            boot: clock.boot,
            bootEnd: clock.sinceBoot + life,
            wallEnd: clock.sinceBoot + life + followed,
            place: nextPlace()
        )
    }
}

// MARK: - Capacity

extension QueueModel {
    private mutating func freeCapacity(_ new: NewRequest, replacing old: String?) throws(QueueError) -> Bool {
        if fits(new, nil, without: old), fits(new, new.lane, without: old) { return true }
        switch new.options.whenFull {
        case .reject, .block: throw QueueError(.queueFull)
        case .dropNewest: return false
        case .dropOldest: break
        }
        // Retries may have exceeded a limit. The new request then makes room only for itself.
        let (ofLane, ofQueue) = (live.filter { $0.lane == new.lane }, live)
        try drop(for: new, of: new.lane, except: old, keeping: ofLane)
        try drop(for: new, of: nil, except: old, keeping: ofQueue)
        return true
    }

    private mutating func drop(
        for new: NewRequest,
        of lane: LaneKey?,
        except old: String?,
        keeping kept: [Request]
    ) throws(QueueError) {
        while !fits(new, lane, without: old, keeping: kept) {
            let oldest = live.first { request in
                request.state != .inflight && request.id != old && request.lane == lane ?? request.lane
            }
            guard let oldest else { throw QueueError(.queueFull) }
            end(oldest.id, .dead, error: "dropped: \(lane == nil ? "the queue" : "the lane") was full")
        }
    }

    /// Returns whether a new request fits into its lane, or into the whole queue if `lane` is `nil`. `old` is the
    /// request that it replaces. The room of the requests `kept` may be used although they exceed the limit.
    private func fits(
        _ new: NewRequest,
        _ lane: LaneKey?,
        without old: String?,
        keeping kept: [Request] = []
    ) -> Bool {
        let others = live.filter { $0.id != old && $0.lane == lane ?? $0.lane }
        let share = lane == nil ? 1 : settings.limits.laneShare
        let (requests, bytes) = (
            Double(settings.limits.requests) * share, Double(settings.limits.bytes) * share
        )
        func size(_ requests: [Request]) -> Int64 { requests.reduce(0) { $0 + $1.size } }
        return others.count < max(Int(requests), kept.count)
            && size(others) + new.size <= max(Int64(bytes), size(kept))
    }
}

extension NewRequest {
    fileprivate var content: String {
        "\(method) \(url) \(body.size) \(lane.label) \(lane.mode) \(options.priority) "
            + "\(options.isAtMostOnce) \(options.replaceKey ?? "-") \(options.expectation)"
    }
}

extension QueueError {
    fileprivate init(_ code: Code) { self.init(code, "as the model says") }
}

internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue

/// The random calls, each of which is made on the store and on the model.
extension ModelRun {
    /// Makes one random call.
    ///
    /// - Returns: Whether the result of the call already contains the due lanes, so that the store need not report them
    ///   as changed.
    mutating func act() async throws -> Bool {
        switch roll(100) {
        case 0..<22: try await enqueue(1)
        case 22..<26: try await enqueue(2 + roll(3))
        case 26..<50: return try await claim()
        case 50..<70: return try await conclude()
        case 70..<82: try await edit()
        case 82..<86: return try await expire()
        case 86..<89: try await pause()
        case 89..<92: return try await crash()
        case 92..<94: return try await reopen()
        default: return passTime()
        }
        return false
    }

    mutating func roll(_ sides: Int) -> Int { Int(random.next() % UInt64(sides)) }

    mutating func chance(_ percent: Int) -> Bool { roll(100) < percent }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[roll(values.count)] }

    // MARK: Enqueuing

    private mutating func enqueue(_ count: Int) async throws {
        var requests: [NewRequest] = []
        var batch: [String] = []
        for _ in 0..<count {
            made += 1
            batch.append(chance(4) && made > 1 ? "r\(roll(made))" : "r\(made)")
        }
        for id in batch { requests.append(try newRequest(id, batch)) }
        call = "enqueue \(requests.map(\.summary))"
        let expected = model.enqueue(requests)
        do {
            let found = try await store.enqueue(requests)
            for accepted in found where accepted.outcome == .accepted {
                laneIDs[accepted.lane.key] = accepted.lane.id
            }
            try expect("\(found.map(\.outcome))", is: expected.text, "outcome")
        } catch let error as QueueError {
            try expect("\(error.code)", is: expected.text, "outcome")
        }
    }

    private mutating func newRequest(_ id: String, _ batch: [String]) throws -> NewRequest {
        let isFIFO = chance(40)
        var options = EnqueueOptions(lane: isFIFO ? "order" : nil, isFIFO: isFIFO, id: id)
        if !isFIFO, chance(30) { options.priority = roll(10) }
        if chance(25) { options.replaceKey = pick(["k1", "k2"]) }
        if chance(20) { options.maximumAttempts = 1 + roll(3) }
        if chance(15) { options.isAtMostOnce = true }
        if chance(20) { options.idempotencyKey = .none }
        options.whenFull = pick([.reject, .reject, .dropOldest, .dropNewest])
        options.timeToLive = .seconds(pick([1, 60, 3600, 86_400, 7 * 86_400]))
        if chance(15) {
            let life = options.timeToLive.components.seconds
            options.notBefore = clock.now.wall.date.addingTimeInterval(
                Double(pick([-60, life / 2, life - 1]))
            )
        }
        options.dependencies = dependencies(of: id, batch)
        let body = Data(repeating: 65, count: pick([0, 0, 10, 100, 700]))
        let host = pick(["a", "b"])
        let request = QueueRequest(
            method: pick(["POST", "POST", "PUT"]),
            url: "http://\(host)/\(id)",
            body: body
        )
        let stored: StoredBody = body.isEmpty ? .none : .inline(body)
        return try NewRequest(request, options: options, body: stored, now: clock.now.wall.date)
    }

    /// Whether half of the run's requests have several dependencies, of which the first is delivered before the others.
    /// In the other runs, requests rarely have more than one dependency that is neither delivered nor failed.
    private var hasManyDependencies: Bool { seed % 4 == 1 }

    private mutating func dependencies(of id: String, _ batch: [String]) -> [String] {
        if hasManyDependencies, !model.live.isEmpty, chance(50) {
            return Set((0..<3).map { _ in pick(model.live).id }).subtracting([id]).sorted()
        }
        guard chance(batch.count > 1 ? 50 : 20) else { return [] }
        var found: [String] = []
        for _ in 0..<(1 + roll(2)) {
            switch roll(10) {
            case 0: found.append("r\(roll(made + 2))")
            case 1...3: found.append(pick(batch))
            default: found += model.listed.isEmpty ? [] : [pick(model.listed).id]
            }
        }
        return Set(found).subtracting([id]).sorted()
    }

    // MARK: Sending

    private mutating func claim() async throws -> Bool {
        let known = laneIDs.keys.sorted { $0.text < $1.text }
        guard !known.isEmpty else { return true }
        let lane = pick(known)
        let releasing: Set<HoldReason>? =
            chance(20) ? pick([[], [.trust], HoldReason.releasableByRestart]) : nil
        let claim = LaneClaim(lane: laneIDs[lane]!, limit: roll(4), releasing: releasing)
        let words = releasing.map { "\($0.map(\.rawValue))" } ?? "no"
        call = "claim \(claim.limit) of \(lane.text), releasing \(words)"
        try check(try await store.claim([claim])[0], of: claim, lane)
        return false
    }

    /// Compares the result of a claim with that of the model.
    private mutating func check(_ batch: ClaimedBatch, of claim: LaneClaim, _ lane: LaneKey) throws {
        let token = batch.requests.first?.lease.token ?? ""
        let expected = model.claim(lane, claim.limit, releasing: claim.releasing, token: token)
        try expect(batch.requests.map(\.id), is: expected, "claimed")
        for request in batch.requests { try check(request) }
        claimed = (claimed + batch.requests).suffix(24)
        try expect(batch.due, is: model.due(lane).map { .milliseconds($0) }, "due time")
        // The result of a claim contains the due time of this lane, so no report about the lane is expected.
        dues[lane] = 0
    }

    private mutating func check(_ request: ClaimedRequest) throws {
        let expected = model.live.first { $0.id == request.id }!
        try expect(request.attempts, is: expected.attempts, "attempts of \(request.id)")
        try expect(request.body.size, is: expected.bodyBytes, "body of \(request.id)")
        try expect(request.url, is: "http://\(expected.lane.origin.host)/\(request.id)", "URL")
        try expect(request.key == nil, is: expected.key == nil, "presence of the key of \(request.id)")
        if expected.key != "" { try expect(request.key?.value, is: expected.key, "key of \(request.id)") }
        model.change(request.id) { $0.key = request.key?.value }
    }

    private mutating func conclude() async throws -> Bool {
        guard !claimed.isEmpty else { return true }
        let request = pick(claimed)
        let conclusion = conclusion(of: request)
        call = "conclude \(request.id) under \(conclusion.token.prefix(4)) with \(conclusion.verdict)"
        let lane = model.live.first { $0.id == request.id }?.lane
        let claim = chance(50) ? lane.map { LaneClaim(lane: laneIDs[$0]!, limit: roll(3)) } : nil
        if let claim { call += ", claiming \(claim.limit) of its lane" }
        let concluded = try await store.conclude([conclusion], claiming: claim.map { [$0] } ?? [])
        let expected = model.conclude(request.id, conclusion)
        try expect(concluded.isCurrent, is: [expected], "whether the lease counts")
        // The caller of `conclude` knows that this lane may have due requests, so no report about the lane is expected.
        if let lane { dues[lane] = 0 }
        if let lane, let claim { try check(concluded.claimed[0], of: claim, lane) }
        return false
    }

    private mutating func conclusion(of request: ClaimedRequest) -> Conclusion {
        let verdict: Verdict =
            switch roll(9) {
            case 0, 1: .delivered(status: 200)
            case 2: .dead(reason: "HTTP 404")
            // No attempt is made of a request that cannot be decrypted, so none ends with `key`.
            case 3: .held(pick(HoldReason.allCases.filter { $0 != .key }))
            case 4, 5, 6: .retry(countsAsAttempt: true)
            default: .retry(countsAsAttempt: false)
            }
        let response = RecordedResponse(
            status: 200,
            headers: [],
            body: Data(count: roll(150)),
            isTruncated: false
        )
        return Conclusion(
            sequence: request.sequence,
            token: chance(5) ? "stale" : request.lease.token,
            verdict: verdict,
            delay: .seconds(pick([0, 0, 5, 100_000])),
            status: chance(70) ? pick([200, 404, 503]) : nil,
            detail: chance(50) ? "detail \(roll(10))" : nil,
            laneClosure: chance(10) ? .seconds(pick([10, 3600, 1_000_000])) : nil,
            attempt: AttemptRecord(duration: .milliseconds(3), curlCode: 0),
            response: chance(40) ? response : nil
        )
    }

    // MARK: Editing

    private mutating func edit() async throws {
        let edit: QueueEdit = pick([
            .cancel, .hold, .release, .release, .retry(newKey: false), .retry(newKey: true),
        ])
        if chance(30) { return try await editMatching(edit) }
        let ids = (0..<(1 + roll(2))).map { _ in chance(90) ? "r\(roll(made + 1))" : "nobody" }
        call = "\(edit) \(ids)"
        let found = try await store.edit(edit, ids)
        let expected = ids.map { model.edit(edit, $0) }
        try expect(found, is: expected, "result")
    }

    private mutating func editMatching(_ edit: QueueEdit) async throws {
        var filter = RequestFilter()
        // Editing all requests at once would leave too few for later calls, so the edit is limited to some states.
        filter.states = Set((0...roll(3)).map { _ in pick(QueuedRequest.State.allCases) })
        if chance(60) { filter.host = pick(["a", "b"]) }
        if chance(40) { filter.lane = pick(["", "order"]) }
        call = "\(edit) of all that match \(filter)"
        let found = try await store.edit(edit, matching: filter, isDryRun: false)
        try expect(found.result, is: model.edit(edit, matching: filter), "numbers")
    }

    private mutating func pause() async throws {
        let paused = model.lanes.filter(\.value.isPaused).map(\.key).sorted { $0.text < $1.text }
        if chance(40) || (model.isPaused && chance(80)) {
            model.beginChange()
            model.pause(!model.isPaused)
            call = "pause all: \(model.isPaused)"
            let found = try await store.setPaused(model.isPaused, lanes: nil)
            try expect(found, is: Set(model.live.map(\.lane)).count, "lanes")
        } else if let lane = paused.isEmpty ? model.live.first?.lane : pick(paused) {
            model.beginChange()
            model.lanes[lane]!.isPaused.toggle()
            let selection = LaneSelection(host: lane.origin.host, label: lane.label)
            call = "pause \(lane.text): \(model.lanes[lane]!.isPaused)"
            let found = try await store.setPaused(model.lanes[lane]!.isPaused, lanes: selection)
            try expect(found, is: 1, "lanes")
        }
    }

    // MARK: Time

    private mutating func expire() async throws -> Bool {
        call = "expire"
        let found = try await store.expire()
        let expected = model.expire()
        try expect(found, is: expected.map { .milliseconds($0) }, "next expiry")
        return false
    }

    private mutating func passTime() -> Bool {
        switch roll(10) {
        case 0: clock.setSynchronized(!model.clock.isSynchronized)
        case 1 where clock.now.wall > start - .seconds(9 * 31_536_000):
            clock.stepWall(.seconds(pick([-3600, 3600, -86_400, 31_536_000, -31_536_000])))
        case 2 where chance(20): clock.setWall(Timestamp(milliseconds: 1_000_000))
        case 3: clock.setWall(start)
        // The store ignores steps of up to a second, because they may come from slewing.
        default: clock.advance(.seconds(pick([2, 6, 60, 900, 7200, 90_000])))
        }
        updateClock()
        call = "time: \(model.clock)"
        return true
    }

    private mutating func updateClock() {
        let boot = model.clock.boot
        model.clock = QueueModel.Clock(clock)
        model.clock.boot = boot
    }

    private mutating func crash() async throws -> Bool {
        let isOtherBoot = chance(50)
        let reasons: Set<HoldReason> = chance(50) ? HoldReason.releasableByRestart : []
        call = "crash, \(isOtherBoot ? "another" : "the same") boot"
        await store.close()
        if isOtherBoot {
            clock.reboot()
            model.clock.boot += 1
            updateClock()
        }
        let inner = try await SQLiteQueueStore(
            directory: directory.path,
            settings: Self.settings,
            clock: clock.clock
        )
        store = fault.map { $0.applied(to: inner, in: directory) } ?? inner
        events = try await store.events().makeAsyncIterator()
        let lanes = try await store.restart(releasing: reasons)
        model.reopened(releasing: reasons, isOtherBoot: isOtherBoot)
        try check(lanes)
        return true
    }

    private mutating func reopen() async throws -> Bool {
        let reasons: Set<HoldReason> = pick([[], [.user], HoldReason.releasableByRestart])
        call = "reopen lanes, releasing \(reasons.map(\.rawValue))"
        let lanes = try await store.reopen(releasing: reasons)
        model.beginChange()
        for lane in model.lanes.keys { model.lanes[lane]!.closure = nil }
        model.release(reasons)
        try check(lanes)
        return true
    }

    /// Expects records for exactly the lanes that have pending requests.
    private mutating func check(_ lanes: [LaneRecord]) throws {
        for lane in lanes { laneIDs[lane.key] = lane.id }
        let expected = Set(model.live.map(\.lane)).filter { model.due($0) != nil }
        try expect(lanes.map(\.key.text).sorted(), is: expected.map(\.text).sorted(), "lanes")
        for lane in lanes {
            try expect(
                lane.due,
                is: model.due(lane.key).map { .milliseconds($0) },
                "due time of \(lane.key.text)"
            )
            let closed = model.closed(model.lanes[lane.key]!)
            let longest = model.settings.longestClosure.components.seconds * 1000
            let notBefore: Duration? = closed == 0 ? nil : .milliseconds(min(closed, longest))
            try expect(lane.notBefore, is: notBefore, "closure of \(lane.key.text)")
        }
    }
}

extension NewRequest {
    /// The properties that help to understand a difference, for messages.
    fileprivate var summary: String {
        var parts = [id, lane.text, method, options.whenFull.rawValue]
        if let key = options.replaceKey { parts.append("replacing \(key)") }
        if !options.dependencies.isEmpty { parts.append("after \(options.dependencies)") }
        if let start = options.notBefore { parts.append("not before \(Timestamp(start).milliseconds)") }
        return parts.joined(separator: " ")
    }
}

extension Result<[Receipt.Outcome], QueueError> {
    fileprivate var text: String {
        switch self {
        case .success(let outcomes): "\(outcomes)"
        case .failure(let error): "\(error.code)"
        }
    }
}

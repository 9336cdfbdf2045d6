internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue

/// A run of random calls to a store. After each call, the store is compared with the model.
struct ModelRun {
    struct Divergence: Error, CustomStringConvertible {
        let step: Int
        let call: String
        let difference: String

        var description: String { "step \(step), \(call): \(difference)" }
    }

    let seed: UInt64
    let fault: InjectedFault?
    var random: SeededGenerator
    var model: QueueModel
    var store: any QueueStore
    /// The events of the store, and the states of the requests according to them.
    var events: QueueEvents.Iterator
    var replay = EventReplay()
    let clock: TestStoreClock
    let directory = TemporaryDirectory(marker: "model")
    var laneIDs: [LaneKey: Int64] = [:]
    /// The last claimed requests, which may have been concluded since. Their leases may be stale.
    var claimed: [ClaimedRequest] = []
    var tokens = 0
    var made = 0
    var sequences: [String: Int64] = [:]
    var call = "opening"
    /// The due times of the lanes before the current call.
    var dues: [LaneKey: Int64] = [:]
    /// A record of a lane that the run does not use. After it is posted, reading `changes` returns at once.
    let sentinel: LaneRecord

    static let settings: StoreSettings = {
        var settings = StoreSettings()
        settings.limits.requests = 16
        settings.limits.bytes = 3000
        settings.limits.laneShare = 0.6
        settings.limits.diskReserve = 0
        settings.retention.doneCount = 5
        settings.retention.bytes = 600
        return settings
    }()

    private init(seed: UInt64, fault: InjectedFault?) async throws {
        self.seed = seed
        self.fault = fault
        random = SeededGenerator(seed: seed)
        clock = TestStoreClock()
        let inner = try await SQLiteQueueStore(
            directory: directory.path,
            settings: Self.settings,
            clock: clock.clock
        )
        sentinel = try await inner.enqueue(try OfflineQueueTests.new("sentinel", host: "sentinel"))[0].lane
        _ = try await inner.edit(.cancel, ["sentinel"])
        store = fault.map { [directory] in $0.applied(to: inner, in: directory) } ?? inner
        events = try await store.events().makeAsyncIterator()
        model = QueueModel(settings: Self.settings, clock: QueueModel.Clock(clock))
        let day = model.settings.retention.done
        clock.advance(day)
        model.clock = QueueModel.Clock(clock)
        _ = try await store.expire()
        while !events.publishedBatch().isEmpty {}
    }

    /// Runs random calls until the store and the model differ.
    ///
    /// - Returns: The first difference; `nil` if there is none.
    static func run(seed: UInt64, steps: Int = 200, fault: InjectedFault? = nil) async throws -> Divergence? {
        var run = try await ModelRun(seed: seed, fault: fault)
        do {
            for step in 0..<steps { try await run.step(step) }
        } catch let divergence as Divergence {
            await run.store.close()
            return divergence
        }
        await run.store.close()
        return nil
    }

    private mutating func step(_ number: Int) async throws {
        do {
            dues = currentDues()
            let isFollowed = try await act()
            try await compare(isFollowed: isFollowed, withCounts: number % 4 == 0)
        } catch let difference as Difference {
            throw Divergence(step: number, call: call, difference: difference.text)
        }
    }

    struct Difference: Error {
        let text: String
    }

    func expect<Value: Equatable>(_ found: Value, is expected: Value, _ what: String) throws {
        guard found != expected else { return }
        throw Difference(text: "\(what): the store has \(found), the model has \(expected)")
    }

    func currentDues() -> [LaneKey: Int64] {
        Dictionary(
            uniqueKeysWithValues: Set(model.live.map(\.lane)).compactMap { lane in
                model.due(lane).map { (lane, $0) }
            }
        )
    }
}

extension QueueModel.Clock {
    init(_ clock: TestStoreClock) {
        self.init(
            wall: clock.now.wall.milliseconds,
            sinceBoot: clock.now.sinceBoot,
            isSynchronized: clock.isSynchronized
        )
    }
}

// MARK: - Comparing

extension ModelRun {
    private mutating func compare(isFollowed: Bool, withCounts: Bool) async throws {
        let page = try await store.page(RequestQuery(limit: 1000)).requests
        try replayEvents(of: page)
        for request in page {
            try expect(
                sequences[request.id] ?? request.sequence,
                is: request.sequence,
                "place of \(request.id)"
            )
        }
        // A deleted id may be enqueued again with a new sequence number, so the numbers of deleted requests are
        // dropped.
        sequences = Dictionary(uniqueKeysWithValues: page.map { ($0.id, $0.sequence) })
        try expect(page.map(\.id), is: model.listed.map(\.id), "requests")
        for (found, expected) in zip(page, model.listed) {
            try expect(Facts(found), is: Facts(expected), expected.id)
        }
        if withCounts { try await compareNumbers() }
        try await compareChanges(isFollowed: isFollowed)
    }

    /// Applies the events of the call, and expects the states of the store as their result.
    private mutating func replayEvents(of page: [QueuedRequest]) throws {
        while case let batch = events.publishedBatch(), !batch.isEmpty {
            for event in batch where fault != .events || event.kind != .unblocked {
                do throws(EventReplay.Mismatch) {
                    try replay.apply(event)
                } catch {
                    throw Difference(text: "\(error)")
                }
            }
        }
        let stored = EventReplay.requests(page)
        for id in Set(stored.keys).union(replay.requests.keys) {
            try expect(stored[id], is: replay.requests[id], "\(id) according to the events")
        }
    }

    private func compareNumbers() async throws {
        let statistics = try await store.statistics()
        for state in QueuedRequest.State.allCases {
            let expected = model.listed.count { $0.state == state }
            try expect(statistics.counts[state], is: expected, "number of \(state)")
        }
        try expect(statistics.requests, is: model.live.count, "number of requests")
        try expect(statistics.bytes, is: model.live.reduce(0) { $0 + $1.size }, "bytes")
        try expect(statistics.isPaused, is: model.isPaused, "pause")
        try expect(statistics.isPaused, is: replay.isPaused, "pause according to the events")
        let paused = statistics.pausedLanes.map { "\($0.host) \($0.label)" }
        try expect(paused, is: model.pausedLanes, "paused lanes")
        try expect(Set(paused), is: replay.pausedLanes, "paused lanes according to the events")
        try expect(statistics.lanes, is: Set(model.live.map(\.lane)).count, "lanes")
    }

    /// Expects a report for every lane that has become due, or is due earlier than before the call.
    private mutating func compareChanges(isFollowed: Bool) async throws {
        store.changes.post([sentinel])
        var told: [LaneKey: LaneRecord] = [:]
        for record in await store.changes.next() where record.id != sentinel.id {
            laneIDs[record.key] = record.id
            told[record.key] = record
        }
        guard !isFollowed else { return }
        for (lane, due) in currentDues() where due < dues[lane] ?? .max {
            guard let record = told[lane], let said = record.due else {
                throw Difference(text: "the store did not report that \(lane.text) is due in \(due) ms")
            }
            guard said <= .milliseconds(due) else {
                throw Difference(text: "\(lane.text) was reported as due in \(said), not in \(due) ms")
            }
        }
    }
}

/// The properties of a request in a list that are compared.
private struct Facts: Equatable {
    let lane: String
    let state: QueuedRequest.State
    let reason: HoldReason?
    let attempts: Int
    let deferrals: Int
    let priority: Int
    let created: Int64
    let due: Int64?
    let expires: Int64?
    let finished: Int64?
    let status: Int?
    let lastError: String?

    init(_ request: QueuedRequest) {
        let host = URLComponents(string: request.url)?.host ?? ""
        lane = "\(host) \(request.lane ?? "") \(request.isFIFO)"
        state = request.state
        reason = request.holdReason
        attempts = request.attempts
        deferrals = request.deferrals
        priority = request.priority
        created = Timestamp(request.created).milliseconds
        due = request.requestDue.map { Timestamp($0).milliseconds }
        expires = request.expires.map { Timestamp($0).milliseconds }
        finished = request.finished.map { Timestamp($0).milliseconds }
        status = request.status
        // If several dependencies of a request fail in one transaction, the model does not know which one the store
        // records.
        let mayTellLoss = request.holdReason == .dependency || request.state.isFinal
        let isLoss = mayTellLoss && request.lastError?.hasPrefix("depends on ") == true
        lastError = isLoss ? nil : request.lastError
    }

    init(_ request: QueueModel.Request) {
        lane = request.lane.text
        state = request.state
        reason = request.reason
        attempts = request.attempts
        deferrals = request.deferrals
        priority = request.priority
        created = request.created
        due = request.state == .pending ? request.due : nil
        expires = request.state.isFinal ? nil : request.wallEnd
        finished = request.finished
        status = request.status
        lastError = request.lastError
    }
}

extension LaneKey {
    var text: String { "\(origin.host) \(label) \(mode == .fifo)" }
}

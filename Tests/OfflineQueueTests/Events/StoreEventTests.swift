internal import Foundation
internal import OfflineQueue
internal import Testing

/// The events that a store reports for its changes. `ModelTests` compares the events of random calls with the states.
@Suite(.timeLimit(.minutes(5))) struct StoreEventTests {
    private let directory = TemporaryDirectory()

    private func bench(_ adjust: (inout StoreSettings) -> Void = { _ in }) async throws -> StoreBench {
        try await StoreKind.sqlite.bench(adjust)
    }

    /// Returns the events that were published already.
    private func take(_ events: inout QueueEvents.Iterator) -> [QueueEvent] {
        var taken: [QueueEvent] = []
        while case let batch = events.publishedBatch(), !batch.isEmpty { taken += batch }
        return taken
    }

    /// Returns the events as short texts: kind, id, and the states before and after.
    private func texts(_ events: inout QueueEvents.Iterator) -> [String] {
        take(&events).map { event in
            [event.kind.rawValue, event.requestID, event.oldState?.rawValue, event.newState?.rawValue]
                .compactMap(\.self).joined(separator: " ")
        }
    }

    @Test func `all changes of a request are reported in the order of their commits`() async throws {
        let bench = try await bench()
        var events = try await bench.store.events().makeAsyncIterator()
        let lane = try await bench.put("a") {
            $0.maximumAttempts = 5
            $0.tag = "t"
        }
        let first = try await bench.takeOne(lane)
        try await bench.store.conclude(
            first,
            .retry(countsAsAttempt: true),
            delay: .seconds(7),
            status: 503,
            detail: "HTTP 503"
        )
        bench.clock.advance(.seconds(7))
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200), status: 200)
        let taken = take(&events)
        #expect(taken.map(\.kind) == [.enqueued, .started, .postponed, .started, .delivered])
        #expect(taken.map(\.oldState) == [nil, .pending, .inflight, .pending, .inflight])
        #expect(taken.map(\.newState) == [.pending, .inflight, .pending, .inflight, .delivered])
        #expect(taken.allSatisfy { $0.requestID == "a" && $0.host == "example.com" && $0.lane == nil })
        #expect(taken.allSatisfy { $0.tag == "t" && $0.stored == start.date })
        #expect(taken[2].due == start.date + 7 && taken[2].status == 503 && taken[2].reason == "HTTP 503")
        #expect(taken.map(\.attempts) == [0, 1, 1, 2, 2])
        #expect(taken.map { $0.date.timeIntervalSince(start.date) } == [0, 0, 0, 7, 7])
        #expect(taken.map(\.number) == Array(taken[0].number..<taken[0].number + 5))
    }

    @Test func `a request without a record leaves nothing in the store, and its end is reported`()
        async throws
    {
        let bench = try await bench()
        var events = try await bench.store.events().makeAsyncIterator()
        func put(_ id: String) async throws -> Int64 {
            try await bench.put(id) { ($0.isRecorded, $0.replaceKey) = (false, "key") }
        }
        _ = try await put("replaced")
        let lane = try await put("done")
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200))
        _ = try await put("refused")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "HTTP 400"), status: 400)
        _ = try await put("stopped")
        _ = try await bench.store.edit(.cancel, ["stopped"])
        _ = try await put("dropped")
        _ = try await bench.store.edit(.cancel, matching: RequestFilter(states: [.pending]), isDryRun: false)
        let ends = texts(&events).filter { !$0.hasPrefix("enqueued") && !$0.hasPrefix("started") }
        #expect(
            ends == [
                "superseded replaced pending superseded", "removed replaced superseded",
                "delivered done inflight delivered", "removed done delivered",
                "dead refused inflight dead", "removed refused dead",
                "cancelled stopped pending cancelled", "removed stopped cancelled",
                "cancelled dropped pending cancelled", "removed dropped cancelled",
            ]
        )
        #expect(try await bench.store.counts() == QueueCounts())
        #expect(try await bench.store.details(of: "refused") == nil)
    }

    @Test func `a change of the credential is reported, and the release that it causes`() async throws {
        let bench = try await bench()
        let lane = try await bench.put("held") { $0.credential = "old" }
        try await bench.store.conclude(try await bench.takeOne(lane), .held(.auth))
        try await bench.put("pending") { $0.credential = "old" }
        var events = try await bench.store.events().makeAsyncIterator()
        _ = try await bench.store.setCredential("new", of: ["held", "pending"])
        _ = try await bench.store.setCredential("new", of: ["pending"])
        #expect(
            texts(&events) == [
                "credential_changed held held held", "released held held pending",
                "credential_changed pending pending pending",
            ]
        )
    }

    @Test func `replaced, dropped and expired requests, and those that wait for them, are reported`()
        async throws
    {
        let bench = try await bench {
            $0.limits.requests = 3
            $0.limits.laneShare = 1
        }
        var events = try await bench.store.events().makeAsyncIterator()
        try await bench.put("a") { $0.replaceKey = "k" }
        try await bench.put("b") {
            $0.replaceKey = "k"
            $0.timeToLive = .seconds(10)
        }
        try await bench.put("c") { $0.dependencies = ["b"] }
        try await bench.put("d")
        try await bench.put("e") { $0.whenFull = .dropOldest }
        #expect(
            texts(&events) == [
                "enqueued a pending", "superseded a pending superseded", "enqueued b pending",
                "enqueued c blocked", "enqueued d pending", "dead b pending dead", "held c blocked held",
                "enqueued e pending",
            ]
        )
        try await bench.put("f", host: "other") {
            $0.timeToLive = .seconds(10)
            $0.whenFull = .dropOldest
        }
        _ = texts(&events)
        bench.clock.advance(.seconds(11))
        _ = try await bench.store.expire()
        #expect(texts(&events) == ["expired f pending dead"])
    }

    @Test func `a dropped dead request is reported`() async throws {
        let bench = try await bench()
        try await bench.finish("a", .dead(reason: "HTTP 404"))
        var events = try await bench.store.events().makeAsyncIterator()
        _ = try await bench.store.edit(.cancel, ["a"])
        #expect(texts(&events) == ["cancelled a dead cancelled"])
    }

    @Test func `a failed dependency is the reason of the hold`() async throws {
        let bench = try await bench()
        try await bench.put("a")
        try await bench.put("b") { $0.dependencies = ["a"] }
        var events = try await bench.store.events().makeAsyncIterator()
        _ = try await bench.store.edit(.cancel, ["a"])
        let held = try #require(take(&events).last)
        #expect(held.kind == .held && held.requestID == "b" && held.holdReason == .dependency)
        #expect(held.reason == "depends on `a`, which is cancelled")
    }

    @Test func `edits of many requests are reported for each of them`() async throws {
        let bench = try await bench()
        for id in ["a", "b"] { try await bench.put(id) }
        var events = try await bench.store.events().makeAsyncIterator()
        let all = RequestFilter()
        let edits: [QueueEdit] = [.hold, .release, .hold, .retry(newKey: false), .cancel]
        for edit in edits {
            _ = try await bench.store.edit(edit, matching: all, isDryRun: false)
        }
        #expect(
            texts(&events) == [
                "held a pending held", "held b pending held", "released a held pending",
                "released b held pending", "held a pending held", "held b pending held",
                "retried a held pending", "retried b held pending", "cancelled a pending cancelled",
                "cancelled b pending cancelled",
            ]
        )
    }

    @Test func `a retried dead request, and the removal of an old record, are reported`() async throws {
        let bench = try await bench()
        try await bench.finish("a", .dead(reason: "HTTP 404"))
        var events = try await bench.store.events().makeAsyncIterator()
        _ = try await bench.store.edit(.retry(newKey: false), ["a"])
        _ = try await bench.store.edit(.cancel, ["a"])
        bench.clock.advance(.seconds(2 * 86_400))
        _ = try await bench.store.expire()
        #expect(
            texts(&events) == [
                "retried a dead pending", "cancelled a pending cancelled", "removed a cancelled",
            ]
        )
    }

    @Test func `closed, opened, paused and resumed lanes are reported, and so is the whole queue`()
        async throws
    {
        let bench = try await bench()
        let lane = try await bench.put("a") { ($0.lane, $0.submitter) = ("l", Submitter(user: 7)) }
        let sent = try await bench.takeOne(lane)
        var events = try await bench.store.events().makeAsyncIterator()
        try await bench.store.conclude(
            sent,
            .retry(countsAsAttempt: true),
            status: 429,
            laneClosure: .seconds(60)
        )
        _ = try await bench.store.reopen(releasing: [])
        _ = try await bench.store.setPaused(true, lanes: LaneSelection(label: "l"))
        _ = try await bench.store.setPaused(true, lanes: nil)
        _ = try await bench.store.setPaused(false, lanes: nil)
        let taken = take(&events).dropFirst()
        #expect(
            taken.map(\.kind)
                == [.laneClosed, .laneOpened, .lanePaused, .queuePaused, .queueResumed, .laneResumed]
        )
        #expect(taken.map(\.lane) == ["l", "l", "l", nil, nil, "l"])
        #expect(taken.map(\.submitter) == [7, 7, 7, nil, nil, 7])
        #expect(taken.first?.due == start.date + 60 && taken.first?.status == 429)
    }

    @Test func `an operation that is refused after it has dropped requests reports nothing`() async throws {
        let bench = try await bench {
            $0.limits.bytes = 2000
            $0.limits.laneShare = 1
        }
        let lane = try await bench.put("a", body: String(repeating: "x", count: 900))
        _ = try await bench.takeOne(lane)
        try await bench.put("b")
        var events = try await bench.store.events().makeAsyncIterator()
        let body = String(repeating: "x", count: 1500)
        await #expect(throws: QueueError.self) {
            try await bench.put("c", body: body) { $0.whenFull = .dropOldest }
        }
        #expect(try await bench.state("b") == .pending)
        #expect(take(&events).isEmpty)
        try await bench.put("d")
        #expect(texts(&events) == ["enqueued d pending"])
    }

    @Test func `enqueuing a known id again reports nothing`() async throws {
        let bench = try await bench()
        try await bench.put("a")
        var events = try await bench.store.events().makeAsyncIterator()
        let again = try await bench.store.enqueue(try new("a"))
        #expect(again[0].outcome == .known)
        #expect(take(&events).isEmpty)
    }

    @Test func `an imported queue can be replayed from its events`() async throws {
        let source = try await bench()
        try await source.finish("dead", .dead(reason: "HTTP 404"))
        let lane = try await source.put("tried")
        try await source.store.conclude(
            try await source.takeOne(lane),
            .retry(countsAsAttempt: true),
            delay: .seconds(5),
            status: 503,
            detail: "HTTP 503"
        )
        try await source.put("after") { $0.dependencies = ["tried"] }
        try await source.put("held")
        _ = try await source.store.edit(.hold, ["held"])
        await source.store.close()
        let (old, new) = (TemporaryDirectory(), TemporaryDirectory())
        let sourcePath = try #require(source.fixture as? SQLiteFixture).directory.path
        let file = "\(NSTemporaryDirectory())/events-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try FileManager.default.copyItem(atPath: sourcePath, toPath: old.path)
        let exported = try await withQueue(old) { queue, _ in try await queue.exported() }
        try exported.write(to: URL(fileURLWithPath: file))
        try await withQueue(new) { queue, store in
            var events = try await queue.events.makeAsyncIterator()
            let imported = try await queue.importRequests(from: file)
            #expect(imported.imported == 4)
            var replay = EventReplay()
            for event in take(&events) { try replay.apply(event) }
            #expect(replay.requests == EventReplay.requests(try await store.all()))
            #expect(replay.requests.count == 4)
        }
    }

    @Test func `an edit of more requests than the buffer holds reports how many events were lost`()
        async throws
    {
        let bench = try await bench()
        let count = 2 * EventFeed.capacity + 500
        for part in 0..<20 {
            let numbers = (part * count / 20)..<((part + 1) * count / 20)
            _ = try await bench.store.enqueue(try numbers.map { try new("r\($0)", body: "") })
        }
        var events = try await bench.store.events().makeAsyncIterator()
        _ = try await bench.store.edit(.hold, matching: RequestFilter(), isDryRun: false)
        let taken = take(&events)
        #expect(taken[0].kind == .lost && taken.dropFirst().allSatisfy { $0.kind == .held })
        #expect(taken[0].lostCount + taken.count - 1 == count)
        #expect(taken.last?.requestID == "r\(count - 1)")
    }

    @Test func `recording ends with the last consumer and begins again with the next one`() async throws {
        let bench = try await bench()
        for id in ["a", "b", "c"] {
            do {
                var events = try await bench.store.events().makeAsyncIterator()
                try await bench.put(id)
                #expect(texts(&events) == ["enqueued \(id) pending"])
            }
            try await bench.put("unseen-\(id)")
        }
    }

    @Test func `a consumer that lists the requests after it has subscribed misses no change`() async throws {
        let bench = try await bench()
        let store = bench.store
        // The writers change the store until the last subscription, so that subscriptions begin during their commits.
        let writers = Task {
            try await withThrowingTaskGroup { group in
                for writer in 0..<4 {
                    group.addTask {
                        var round = 0
                        while !Task.isCancelled {
                            round += 1
                            let id = "w\(writer)-\(round)"
                            try await store.enqueue(try new(id))
                            _ = try await store.edit(round.isMultiple(of: 2) ? .hold : .cancel, [id])
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        var consumers: [(known: [String: QueuedRequest.State], events: QueueEvents.Iterator)] = []
        for _ in 0..<20 {
            let events = try await store.events().makeAsyncIterator()
            consumers.append((try await store.states(), events))
        }
        writers.cancel()
        try await writers.value
        let states = try await store.states()
        for index in consumers.indices {
            for event in take(&consumers[index].events) {
                consumers[index].known[try #require(event.requestID)] = event.newState
            }
            #expect(consumers[index].known == states)
        }
    }

    @Test func `the events of a queue end when it stops`() async throws {
        let queue = try await directory.openQueue(isStarted: false)
        let events = try await queue.events
        async let kinds = events.reduce(into: []) { $0.append($1.kind) }
        try await queue.start()
        _ = try await queue.enqueue(QueueRequest(method: "POST", url: "https://example.com"))
        await queue.stop()
        #expect(await kinds.first == .enqueued)
        await #expect(throws: QueueError.self) { _ = try await queue.events }
    }
}

internal import Foundation
internal import OfflineQueue
internal import Testing

/// What happens to requests when the queue is full.
@Suite struct LimitConformance {
    private func refusal(_ bench: StoreBench, _ request: NewRequest) async throws -> QueueError {
        try await #require(throws: QueueError.self) { try await bench.store.enqueue(request) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a full queue refuses a request and changes nothing`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 2
            $0.limits.laneShare = 1
        }
        for id in ["a", "b"] { try await bench.put(id) }
        for policy in [FullQueuePolicy.reject, .block] {
            let error = try await refusal(bench, try new("c") { $0.whenFull = policy })
            #expect(error.code == .queueFull)
            #expect(error.message.contains("2"), "the message names the limit")
        }
        #expect(try await bench.store.states() == ["a": .pending, "b": .pending])
        // Enqueuing a known id needs no capacity.
        #expect(try await bench.store.enqueue(try new("a"))[0].outcome == .known)
    }

    @Test(arguments: StoreKind.allCases)
    func `bytes are limited, and finished requests free capacity`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.bytes = 300
            $0.limits.laneShare = 1
        }
        let body = String(repeating: "x", count: 200)
        let lane = try await bench.put("a", body: body)
        #expect(try await refusal(bench, try new("b", body: body)).code == .queueFull)
        try await bench.put("small", body: "")
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200))
        try await bench.put("b", body: body)
        let statistics = try await bench.store.statistics()
        #expect(statistics.requests == 2)
        let texts = ["http://example.com/", "small", "http://example.com/", "b", body]
        #expect(statistics.bytes == Int64(texts.joined().utf8.count))
    }

    @Test(arguments: StoreKind.allCases)
    func `one lane uses only its share of the limits`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 4
            $0.limits.laneShare = 0.5
        }
        for id in ["a", "b"] { try await bench.put(id) }
        let lane = try await refusal(bench, try new("c"))
        #expect(lane.code == .queueFull)
        #expect(
            lane.message == "the lane has 2 requests; its limit is 2, which is 50 % of `limits.requests`"
        )
        for id in ["c", "d"] { try await bench.put(id, host: "other") }
        let queue = try await refusal(bench, try new("e", host: "third"))
        #expect(queue.code == .queueFull && queue.message == "the queue has 4 requests; its limit is 4")
    }

    @Test(arguments: StoreKind.allCases)
    func `a request that is too large for a lane is refused with the setting`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.bytes = 300
            // As a `Double`, 0.29 * 100 is less than 29.
            $0.limits.laneShare = 0.29
        }
        let error = try await refusal(bench, try new("a", body: String(repeating: "x", count: 200)))
        #expect(error.code == .bodyTooLarge)
        #expect(
            error.message.hasSuffix(
                "at most 87 are accepted in a lane, which is 29 % of `limits.bytes`"
            ),
            "\(error.message)"
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `a refusal names the share of a lane as it is configured`(kind: StoreKind) async throws {
        // 0.29 * 100 is less than 29.
        let bench = try await kind.bench {
            $0.limits.bytes = 300
            $0.limits.laneShare = 0.29
        }
        let error = try await refusal(bench, try new("a", body: String(repeating: "x", count: 200)))
        #expect(error.message.hasSuffix(", which is 29 % of `limits.bytes`"), "\(error.message)")
    }

    @Test(arguments: StoreKind.allCases)
    func `a refusal names a share of less than one percent`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 250
            $0.limits.laneShare = 0.004
        }
        try await bench.put("a")
        let error = try await refusal(bench, try new("b"))
        #expect(
            error.message.hasSuffix("; its limit is 1, which is 0.4 % of `limits.requests`"),
            "\(error.message)"
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `the oldest request that is not in flight is dropped`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 3
            $0.limits.laneShare = 1
        }
        let lane = try await bench.put("a")
        for id in ["b", "c"] { try await bench.put(id) }
        _ = try await bench.takeOne(lane)
        try await bench.put("d") { $0.whenFull = .dropOldest }
        #expect(
            try await bench.store.states()
                == ["a": .inflight, "b": .dead, "c": .pending, "d": .pending]
        )
        #expect(try await bench.summary("b").lastError == "dropped: the lane was full")
        try await bench.put("e", host: "other.example") { $0.whenFull = .dropOldest }
        #expect(try await bench.summary("c").lastError == "dropped: the queue was full")
    }

    @Test(arguments: StoreKind.allCases, [0.5, 1])
    func `limits below what is stored drop no more than a new request needs`(kind: StoreKind, share: Double)
        async throws
    {
        let bench = try await kind.bench()
        for id in ["a", "b", "c", "d"] { try await bench.put(id) }
        (bench.settings.limits.requests, bench.settings.limits.laneShare) = (2, share)
        try await bench.reopen()
        for id in ["e", "f"] { try await bench.put(id) { ($0.whenFull, $0.replaceKey) = (.dropOldest, "k") } }
        #expect(try await bench.waiting().keys.sorted() == ["b", "c", "d", "f"])
    }

    @Test(arguments: StoreKind.allCases)
    func `no request is dropped for a new one that can never fit`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.bytes = 300
            $0.limits.laneShare = 1
        }
        for id in ["a", "b"] { try await bench.put(id) }
        let large = try new("c", body: String(repeating: "x", count: 400)) { $0.whenFull = .dropOldest }
        #expect(try await refusal(bench, large).code == .bodyTooLarge)
        #expect(try await bench.store.states() == ["a": .pending, "b": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `a new request with the policy dropNewest is dropped`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 1
            $0.limits.laneShare = 1
        }
        try await bench.put("a")
        let dropped = try await bench.store.enqueue(try new("b") { $0.whenFull = .dropNewest })[0]
        #expect(dropped.outcome == .dropped)
        #expect(try await bench.store.states() == ["a": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `a replaced request's capacity is available to its replacement`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 1
            $0.limits.laneShare = 1
        }
        try await bench.put("a") { $0.replaceKey = "k" }
        try await bench.put("b") { $0.replaceKey = "k" }
        #expect(try await bench.store.states() == ["a": .superseded, "b": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `a FIFO lane whose head was dropped continues, and the change is reported`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench {
            $0.limits.requests = 2
            $0.limits.laneShare = 1
        }
        let lane = try await bench.put("a", host: "order", isFIFO: true)
        try await bench.put("b", host: "order", isFIFO: true)
        _ = try await bench.store.edit(.hold, ["a"])
        _ = await bench.store.changes.next()
        try await bench.put("c", host: "other") { $0.whenFull = .dropOldest }
        #expect(await bench.store.changes.next().contains { $0.id == lane && $0.due == .zero })
        #expect(try await bench.take(lane).map(\.id) == ["b"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the counters match the rows`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        for index in 0..<20 { try await bench.put("\(index)", host: "h\(index % 3)") }
        let lane = try await bench.put("held", host: "x")
        try await bench.store.conclude(try await bench.takeOne(lane), .held(.auth))
        try await bench.put("blocked", host: "y") { $0.dependencies = ["held"] }
        _ = try await bench.store.edit(.cancel, ["1", "2"])
        let all = try await bench.store.all()
        for state in QueuedRequest.State.allCases {
            #expect(try await bench.store.counts()[state] == all.count { $0.state == state }, "\(state)")
        }
        let statistics = try await bench.store.statistics()
        #expect(statistics.requests == 20 && statistics.lanes == 5)
        #expect(statistics.oldest == start.date)
    }
}

internal import Foundation
internal import OfflineQueue
internal import Testing

/// What a store guarantees when it accepts a request (transition T1).
@Suite struct AcceptanceConformance {
    @Test(arguments: StoreKind.allCases)
    func `accepted requests are unchanged after reopening`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let headers = [
            QueueRequest.Header(name: "X-Empty", value: ""),
            QueueRequest.Header(name: "x-odd", value: "\u{301}a: b, \"c\" ☃  "),
            QueueRequest.Header(name: "X-Twice", value: "1"),
            QueueRequest.Header(name: "X-Twice", value: "2"),
        ]
        var options = EnqueueOptions(lane: "l", id: "a")
        options.idempotencyKey = IdempotencyKey(.value("the key"))
        options.idempotencyKey.isQuoted = true
        options.idempotencyKey.headerName = "X-Key"
        options.expectation = Expectation(statuses: [200...204, 404...404], contentType: "application/json")
        options.priority = 3
        let body = Data((0..<65_536).map { UInt8($0 % 251) })
        let new = try NewRequest(
            QueueRequest(method: "patch", url: "https://EXAMPLE.com/a?q#f", headers: headers, body: body),
            options: options,
            body: .inline(body),
            now: start.date
        )
        try await bench.store.enqueue(new)
        let lane = try #require(try await bench.reopen().first)
        #expect(lane.key.origin == Origin(scheme: "https", host: "example.com", port: 443))
        #expect(lane.key.label == "l")
        let taken = try await bench.takeOne(lane.id)
        #expect(taken.id == "a" && taken.method == "patch" && taken.url == "https://EXAMPLE.com/a?q#f")
        #expect(taken.headers == headers)
        #expect(taken.body == .inline(body))
        #expect(taken.key?.header == QueueRequest.Header(name: "X-Key", value: "\"the key\""))
        #expect(taken.options.expectation == options.expectation)
        #expect(taken.attempts == 1 && taken.deferrals == 0 && taken.lastStatus == nil)
        #expect(try await bench.summary("a").priority == 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `a known id changes nothing, whether its request is waiting or finished`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let first = try await bench.store.enqueue(try new("a"))[0]
        let again = try await bench.store.enqueue(try new("a"))[0]
        #expect(first.outcome == .accepted && again.outcome == .known)
        #expect(again.idempotencyKey == first.idempotencyKey && first.idempotencyKey != nil)
        #expect(again.state == .pending)
        let request = try await bench.take(first.lane.id)
        #expect(request.map(\.body) == [.inline(Data("hello".utf8))])
        #expect(try await bench.store.enqueue(try new("a"))[0].state == .inflight)
        try await bench.store.conclude(request[0], .delivered(status: 200), status: 201)
        let over = try await bench.store.enqueue(try new("a"))[0]
        #expect(over.outcome == .known && over.state == .delivered && over.status == 201)
        #expect(try await bench.store.counts()[.pending] == 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `a known id with different content is refused, and the message names the differences`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench()
        func differences(_ other: NewRequest) async throws -> String {
            let error = try await #require(throws: QueueError.self) { try await bench.store.enqueue(other) }
            #expect(error.code == .idConflict)
            let list = error.message.components(separatedBy: "differs in: ").last ?? ""
            return String(list.prefix { $0 != ";" })
        }
        let lane = try await bench.put("a")
        for isOver in [false, true] {
            if isOver {
                let taken = try await bench.takeOne(lane)
                try #require(try await bench.store.conclude(taken, .delivered(status: 200)))
            }
            #expect(try await differences(try new("a", method: "PUT")) == "method")
            #expect(try await differences(try new("a", host: "elsewhere.example")) == "URL")
            // Of a deleted body, the length and the hash are known.
            #expect(try await differences(try new("a", body: "longer than before")) == "body")
            #expect(try await differences(try new("a", body: "hallo")) == "body")
            #expect(try await differences(try new("a") { $0.lane = "l" }) == "lane")
            #expect(try await differences(try new("a") { $0.isFIFO = true }) == "FIFO")
            #expect(try await differences(try new("a") { $0.priority = 1 }) == "priority")
            #expect(try await differences(try new("a") { $0.replaceKey = "k" }) == "replace key")
            #expect(try await differences(try new("a") { $0.isAtMostOnce = true }) == "at-most-once")
            let other = try new("a") { $0.expectation = Expected(rules: [.header("X-Box")]) }
            #expect(try await differences(other) == "expectation")
            // Callers give times relative to the time of the call, so they differ in every call.
            let later = try new("a") { $0.timeToLive = .seconds(9) }
            #expect(try await bench.store.enqueue(later)[0].outcome == .known)
            #expect(try await bench.store.enqueue(try new("a"))[0].outcome == .known)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch with a known id and different content changes nothing`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.put("a")
        await #expect(throws: QueueError.self) {
            try await bench.store.enqueue(try new("b"), try new("a", body: "another"))
        }
        #expect(try await bench.store.states() == ["a": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `the same id twice in one call adds one request`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let outcomes = try await bench.store.enqueue(try new("a"), try new("a"), try new("b")).map(\.outcome)
        #expect(outcomes == [.accepted, .known, .accepted])
        #expect(try await bench.store.all().map(\.id) == ["a", "b"])
    }

    @Test(arguments: StoreKind.allCases)
    func `either all requests of a batch are accepted or none`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let orphan = try new("b") { $0.dependencies = ["nobody"] }
        let error = try await #require(throws: QueueError.self) {
            try await bench.store.enqueue([try new("a"), orphan, try new("c")])
        }
        #expect(error.code == .unknownDependency)
        #expect(try await bench.store.all().isEmpty)
        #expect(try await bench.store.statistics().requests == 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `a refused request does not affect others of its commit`(kind: StoreKind) async throws {
        let bench = try await kind.bench { $0.limits.requests = 200 }
        let outcomes = try await withThrowingTaskGroup(of: QueueError.Code?.self) { group in
            for index in 0..<60 {
                let store = bench.store
                group.addTask {
                    do {
                        try await store.enqueue(
                            try new("\(index)") { if index % 3 == 0 { $0.dependencies = ["nobody"] } }
                        )
                        return nil
                    } catch let error as QueueError {
                        return error.code
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count { $0 == .unknownDependency } == 20)
        #expect(try await bench.store.counts()[.pending] == 40)
    }

    @Test(arguments: StoreKind.allCases)
    func `sequence numbers increase and are never reused`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        var places: [Int64] = []
        for id in ["a", "b", "c"] {
            try await bench.put(id)
            places.append(try await bench.summary(id).sequence)
            _ = try await bench.store.edit(.cancel, [id])
            bench.clock.advance(day)
            _ = try await bench.store.expire()
            try await bench.reopen()
        }
        #expect(places == places.sorted() && Set(places).count == 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request is not claimed before its due time`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let hour = start.date.addingTimeInterval(3600)
        let accepted = try await bench.store.enqueue(try new("a") { $0.notBefore = hour })[0]
        #expect(accepted.due == .seconds(3600))
        #expect(try await bench.take(accepted.lane.id).isEmpty)
        // None of these makes the request due early: a flush, a hold with a release, a path that is found.
        _ = try await bench.store.claim(8, of: accepted.lane.id, releasing: HoldReason.releasableByRestart)
        _ = try await bench.store.edit(.hold, ["a"])
        _ = try await bench.store.edit(.release, ["a"])
        bench.clock.advance(.seconds(3599))
        #expect(try await bench.take(accepted.lane.id).isEmpty)
        bench.clock.advance(.seconds(1))
        #expect(try await bench.take(accepted.lane.id).map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a retried request ignores its scheduled time`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a") { $0.notBefore = start.date.addingTimeInterval(86_400) }
        #expect(try await bench.store.edit(.retry(newKey: false), ["a"]) == [.done(.pending)])
        #expect(try await bench.take(lane).map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a scheduled time in the past means now`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a") { $0.notBefore = Date(timeIntervalSince1970: 0) }
        #expect(try await bench.take(lane).map(\.id) == ["a"])
    }
}

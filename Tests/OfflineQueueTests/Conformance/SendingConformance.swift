internal import Foundation
internal import OfflineQueue
internal import Testing

/// Claims (T2), outcomes of attempts (T3) and recovery (T4).
@Suite struct SendingConformance {
    @Test(arguments: StoreKind.allCases)
    func `requests are claimed in the order of acceptance, each once`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        var lane: Int64 = 0
        for id in ["a", "b", "c", "d", "e"] { lane = try await bench.put(id) }
        #expect(try await bench.take(lane, 2).map(\.id) == ["a", "b"])
        #expect(try await bench.take(lane, 2).map(\.id) == ["c", "d"])
        #expect(try await bench.take(lane, 0).isEmpty)
        #expect(try await bench.take(lane, 2).map(\.id) == ["e"])
        #expect(try await bench.take(lane, 2).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a claim in a FIFO lane returns only the head, and only if it is due`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let store = bench.store
        let lane = try await bench.put("a", isFIFO: true)
        try await bench.put("b", isFIFO: true)
        let head = try await bench.takeOne(lane)
        #expect(head.id == "a")
        #expect(try await bench.take(lane).isEmpty, "the head is in flight")
        try await store.conclude(head, .retry(countsAsAttempt: true), delay: .seconds(5))
        let waiting = try await store.claim(of: lane)
        #expect(waiting.requests.isEmpty && waiting.due == .seconds(5))
        bench.clock.advance(.seconds(5))
        let again = try await bench.takeOne(lane)
        #expect(again.id == "a" && again.attempts == 2)
        try await store.conclude(again, .held(.auth))
        let held = try await store.claim(of: lane)
        #expect(held.requests.isEmpty && held.due == nil)
        let released = try await store.claim(8, of: lane, releasing: [.auth]).requests
        #expect(released.map(\.id) == ["a"])
        try await store.conclude(released[0], .dead(reason: "HTTP 404"))
        #expect(try await bench.take(lane).map(\.id) == ["b"], "a dead request is skipped")
    }

    @Test(arguments: StoreKind.allCases)
    func `a blocked head blocks its FIFO lane`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let first = try await bench.put("first", host: "other")
        let lane = try await bench.put("a", isFIFO: true) { $0.dependencies = ["first"] }
        try await bench.put("b", isFIFO: true)
        #expect(try await bench.take(lane).isEmpty)
        try await bench.store.conclude(try await bench.takeOne(first), .delivered(status: 200))
        #expect(try await bench.take(lane).map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the outcomes of attempts are stored`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let first = try await bench.takeOne(lane)
        try await bench.store.conclude(
            first,
            .retry(countsAsAttempt: true),
            status: 503,
            detail: "HTTP 503",
            attempt: AttemptRecord(duration: .milliseconds(250), curlCode: 0)
        )
        #expect(try await bench.summary("a").status == 503)
        bench.clock.advance(.seconds(1))
        let second = try await bench.takeOne(lane)
        #expect(second.lastStatus == 503 && second.attempts == 2)
        let answer = RecordedResponse(
            status: 200,
            headers: [.init(name: "X-A", value: "b")],
            body: Data("yes".utf8),
            isTruncated: true
        )
        try await bench.store.conclude(
            second,
            .delivered(status: 200),
            status: 200,
            attempt: AttemptRecord(duration: .seconds(1), curlCode: 0),
            response: answer
        )
        let details = try #require(try await bench.store.details(of: "a"))
        #expect(details.summary.state == .delivered && details.summary.status == 200)
        #expect(details.summary.finished == bench.clock.now.wall.date)
        #expect(details.response == answer)
        #expect(details.attempts.map(\.number) == [1, 2])
        #expect(details.attempts.map(\.status) == [503, 200])
        #expect(details.attempts.map(\.error) == ["HTTP 503", nil])
        #expect(details.attempts.map(\.duration) == [.milliseconds(250), .seconds(1)])
        #expect(details.attempts[0].started == start.date.addingTimeInterval(-0.25))
    }

    @Test(arguments: StoreKind.allCases)
    func `the last 32 attempts are stored, each with 512 bytes of error`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        for _ in 0..<40 {
            try await bench.store.conclude(
                try await bench.takeOne(lane),
                .retry(countsAsAttempt: true),
                detail: String(repeating: "ä", count: 400),
                attempt: AttemptRecord(duration: .zero, curlCode: 7)
            )
        }
        let attempts = try #require(try await bench.store.details(of: "a")).attempts
        #expect(attempts.map(\.number) == Array(9...40))
        #expect(attempts.allSatisfy { $0.error?.utf8.count == 512 && $0.curlCode == 7 })
    }

    @Test(arguments: StoreKind.allCases)
    func `an attempt without a network does not count`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a") { $0.maximumAttempts = 1 }
        for _ in 0..<5 {
            try await bench.store.conclude(try await bench.takeOne(lane), .retry(countsAsAttempt: false))
        }
        let summary = try await bench.summary("a")
        #expect(summary.attempts == 0 && summary.deferrals == 5 && summary.state == .pending)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request is given up after its last attempt`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a") { $0.maximumAttempts = 2 }
        for _ in 0..<2 {
            let request = try await bench.takeOne(lane)
            try await bench.store.conclude(request, .retry(countsAsAttempt: true), detail: "HTTP 503")
        }
        let summary = try await bench.summary("a")
        #expect(summary.state == .dead && summary.lastError == "failed 2 times: HTTP 503")
    }

    @Test(arguments: StoreKind.allCases)
    func `no request is due later than the longest delay`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        try await bench.store.conclude(
            try await bench.takeOne(lane),
            .retry(countsAsAttempt: true),
            delay: day * 30
        )
        #expect(try await bench.store.claim(of: lane).due == bench.settings.longestDelay)
    }

    // MARK: Leases

    @Test(arguments: StoreKind.allCases)
    func `a stale lease cannot finish a request`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let request = try await bench.takeOne(try await bench.put("a"))
        #expect(try await !bench.store.conclude(request, .delivered(status: 200), token: "stale"))
        #expect(try await bench.state("a") == .inflight)
        #expect(try await bench.store.details(of: "a")?.attempts.isEmpty == true)
        #expect(try await bench.store.conclude(request, .delivered(status: 200)))
        #expect(try await !bench.store.conclude(request, .dead(reason: "late")))
        #expect(try await bench.state("a") == .delivered)
    }

    @Test(arguments: StoreKind.allCases)
    func `a lease of an earlier run cannot finish a request of this run`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let old = try await bench.takeOne(lane)
        try await bench.reopen()
        #expect(try await !bench.store.conclude(old, .delivered(status: 200)))
        let new = try await bench.takeOne(lane)
        #expect(new.lease.token != old.lease.token)
        #expect(try await !bench.store.conclude(old, .delivered(status: 200)))
        #expect(try await bench.state("a") == .inflight)
    }

    @Test(arguments: StoreKind.allCases)
    func `each outcome of a call is checked against its own lease`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        try await bench.put("b")
        let taken = try await bench.take(lane)
        let conclusions = [
            Conclusion(sequence: taken[0].sequence, token: "stale", verdict: .dead(reason: "")),
            Conclusion(
                sequence: taken[1].sequence,
                token: taken[1].lease.token,
                verdict: .delivered(status: 200)
            ),
            Conclusion(sequence: 999, token: taken[0].lease.token, verdict: .delivered(status: 200)),
        ]
        #expect(try await bench.store.conclude(conclusions) == [false, true, false])
        #expect(try await bench.store.states() == ["a": .inflight, "b": .delivered])
    }

    // MARK: Recovery

    @Test(arguments: StoreKind.allCases)
    func `requests in flight of a dead owner are pending again, unless they must not be sent twice`(
        kind: StoreKind
    )
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("keyed")
        try await bench.put("idempotent", method: "PUT")
        try await bench.put("keyless") { $0.idempotencyKey = .none }
        try await bench.put("once", method: "PUT") { $0.isAtMostOnce = true }
        try await bench.put("waiting")
        try await bench.take(lane, 4)
        let lanes = try await bench.reopen()
        #expect(lanes.map(\.due) == [.zero])
        #expect(
            try await bench.store.states() == [
                "keyed": .pending, "idempotent": .pending, "keyless": .held, "once": .held,
                "waiting": .pending,
            ]
        )
        #expect(try await bench.summary("once").holdReason == .ambiguous)
        #expect(try await bench.store.all().map(\.attempts) == [1, 1, 1, 1, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `an attempt during which the process ended is counted and listed`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        try await bench.put("once") { $0.isAtMostOnce = true }
        bench.clock.advance(.seconds(5))
        let start = bench.clock.now.wall
        try await bench.take(lane, 2)
        bench.clock.advance(.seconds(60))
        try await bench.reopen()
        for id in ["a", "once"] {
            let details = try #require(try await bench.store.details(of: id))
            #expect(details.summary.attempts == 1 && details.attempts.map(\.number) == [1])
            #expect(details.attempts[0].started == start.date && details.attempts[0].duration == .zero)
            #expect(details.attempts[0].error == "the attempt was interrupted: the sending process ended")
            #expect(details.summary.lastError == "the attempt was interrupted: the sending process ended")
        }
        let record = AttemptRecord(duration: .zero, curlCode: 0)
        try await bench.store.conclude(
            try await bench.takeOne(lane),
            .delivered(status: 200),
            status: 200,
            attempt: record
        )
        let details = try #require(try await bench.store.details(of: "a"))
        #expect(details.summary.attempts == 2 && details.attempts.map(\.number) == [1, 2])
    }

    @Test(arguments: StoreKind.allCases)
    func `recovery releases only requests whose hold reason a restart may resolve`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        for reason in HoldReason.allCases {
            let lane = try await bench.put("\(reason)", host: "\(reason).example")
            try await bench.store.conclude(try await bench.takeOne(lane), .held(reason))
        }
        try await bench.reopen(releasing: HoldReason.releasableByRestart)
        let states = try await bench.store.states()
        for reason in HoldReason.allCases {
            #expect(
                states["\(reason)"] == (HoldReason.releasableByRestart.contains(reason) ? .pending : .held)
            )
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a lane closed by Retry-After stays closed after a restart, and a flush opens it`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let request = try await bench.takeOne(try await bench.put("a"))
        let hour = Duration.seconds(3600)
        try await bench.store.conclude(request, .retry(countsAsAttempt: true), delay: hour, laneClosure: hour)
        let lane = try await bench.reopen()[0]
        #expect(lane.notBefore == hour && lane.due == bench.settings.longestDelay)
        bench.clock.stepWall(day * -365)
        #expect(try await bench.reopen()[0].notBefore == hour)
        await #expect(throws: QueueError.self) {
            _ = try await bench.store.reopen(LaneSelection(host: "unknown"), releasing: [])
        }
        #expect(try await bench.reopen()[0].notBefore == hour)
        #expect(try await bench.store.reopen(releasing: [])[0].notBefore == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a closed lane reports its end and its cause`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let request = try await bench.takeOne(try await bench.put("a"))
        let (verdict, hour) = (Verdict.retry(countsAsAttempt: true), Duration.seconds(3600))
        try await bench.store.conclude(request, verdict, delay: hour, status: 429, laneClosure: hour)
        let closure = try #require(try await bench.summary("a").laneClosure)
        #expect(closure.status == 429 && "\(closure)" == "lane closed by Retry-After of HTTP 429")
        #expect(try await bench.store.page(RequestQuery()).requests.map(\.laneClosure) == [closure])
        #expect(try await bench.store.statistics().closedLanes.map(\.closure) == [closure])
        bench.clock.advance(hour - .seconds(1))
        #expect(try await bench.summary("a").laneClosure == closure)
        bench.clock.advance(.seconds(1))
        #expect(try await bench.summary("a").laneClosure == nil)
        #expect(try await bench.store.statistics().closedLanes.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a claim reports by how long it postponed retries that it may not take`(kind: StoreKind) async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        _ = try await bench.put("b")
        for request in try await bench.take(lane) {
            try await bench.store.conclude(request, .retry(countsAsAttempt: true))
        }
        let allowance = RetryAllowance(count: 0, wait: .seconds(5))
        let refused = try await bench.store.claim(of: lane, retries: allowance)
        #expect(refused.requests.isEmpty && refused.postponement == .seconds(6))
        #expect(refused.due == .seconds(5))
        bench.clock.advance(.seconds(6))
        #expect(try await bench.store.claim(of: lane).postponement == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `the requests of a lane closed by Retry-After are due when the lane opens, or later`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let request = try await bench.takeOne(lane)
        _ = try await bench.put("b")
        let (verdict, hour) = (Verdict.retry(countsAsAttempt: true), Duration.seconds(3600))
        #expect(hour > bench.settings.longestDelay)
        try await bench.store.conclude(request, verdict, delay: hour, status: 429, laneClosure: hour)
        let opening = bench.clock.now.wall.date + 3600
        #expect(try await bench.summary("a").due == opening)
        #expect(try await bench.summary("a").requestDue == opening)
        #expect(try await bench.summary("b").due == opening)
        bench.clock.advance(hour)
        #expect(try await bench.take(lane).map(\.id) == ["b", "a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the age of a conflict survives a restart and ends with another response`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        func age(after status: Int?) async throws -> Duration? {
            let request = try await bench.takeOne(lane)
            try await bench.store.conclude(request, .retry(countsAsAttempt: true), status: status)
            bench.clock.advance(.seconds(60))
            try await bench.reopen()
            let next = try await bench.takeOne(lane)
            try await bench.store.conclude(next, .retry(countsAsAttempt: false))
            return next.conflictAge
        }
        #expect(try await age(after: 500) == nil)
        #expect(try await age(after: 409) == .seconds(60))
        #expect(try await age(after: nil) == .seconds(120), "no response: the conflict continues")
        #expect(try await age(after: 409) == .seconds(180))
        #expect(try await age(after: 503) == nil)
        #expect(try await age(after: 409) == .seconds(60))
        _ = try await bench.store.edit(.retry(newKey: false), ["a"])
        #expect(try await bench.takeOne(lane).conflictAge == nil, "the age starts again after a conflict")
    }

    @Test(arguments: StoreKind.allCases)
    func `a retry keeps the key`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let first = try await bench.takeOne(lane)
        try await bench.store.conclude(first, .retry(countsAsAttempt: true))
        try await bench.reopen()
        #expect(try await bench.takeOne(lane).key == first.key)
        #expect(first.key != nil)
    }
}

internal import Foundation
internal import OfflineQueue
internal import Testing

/// Expiry (T6): requests are given up when their time to live is over, by a clock that can be trusted.
@Suite struct ExpiryConformance {
    private func put(_ bench: StoreBench, _ id: String = "a", for life: Duration = day) async throws -> Int64
    {
        try await bench.put(id, host: id) { $0.timeToLive = life }
    }

    private func isGivenUp(_ bench: StoreBench, _ id: String = "a") async throws -> Bool {
        _ = try await bench.store.expire()
        return try await bench.state(id) == .dead
    }

    @Test(arguments: StoreKind.allCases)
    func `the sweep gives up expired requests and returns the time of the next one`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        _ = try await put(bench, "a", for: .seconds(60))
        _ = try await put(bench, "b", for: .seconds(90))
        #expect(try await bench.store.expire() == .seconds(60))
        bench.clock.advance(.milliseconds(59_999))
        #expect(try await bench.store.expire() == .milliseconds(1))
        bench.clock.advance(.milliseconds(1))
        #expect(try await bench.store.expire() == .seconds(30))
        #expect(try await bench.store.states() == ["a": .dead, "b": .pending])
        #expect(try await bench.summary("a").lastError == "time to live exceeded")
        bench.clock.advance(.seconds(30))
        #expect(try await bench.store.expire() == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `held and blocked requests expire, and requests in flight do not`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "sent")
        let sent = try await bench.takeOne(lane)
        _ = try await put(bench, "held")
        _ = try await bench.store.edit(.hold, ["held"])
        try await bench.put("blocked", host: "x") {
            $0.dependencies = ["sent"]
            $0.timeToLive = day
        }
        bench.clock.advance(day)
        _ = try await bench.store.expire()
        #expect(try await bench.store.states() == ["sent": .inflight, "held": .dead, "blocked": .dead])
        try await bench.store.conclude(sent, .retry(countsAsAttempt: true))
        #expect(try await isGivenUp(bench, "sent"))
    }

    @Test(arguments: StoreKind.allCases)
    func `a claim gives up expired requests and claims the next one`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        var lane: Int64 = 0
        for index in 0..<4 {
            lane = try await bench.put("old\(index)") {
                $0.timeToLive = .seconds(60)
                $0.priority = 0
            }
        }
        try await bench.put("high") { $0.priority = 0 }
        try await bench.put("low") { $0.priority = 9 }
        bench.clock.advance(.seconds(60))
        #expect(try await bench.take(lane, 1).map(\.id) == ["high"], "a lower priority is not claimed first")
        #expect(try await bench.store.counts()[.dead] == 4)
    }

    @Test(arguments: StoreKind.allCases)
    func `a FIFO lane continues after its head finished`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("old", isFIFO: true) { $0.timeToLive = .seconds(60) }
        try await bench.put("next", isFIFO: true)
        bench.clock.advance(.seconds(60))
        let first = try await bench.store.claim(of: lane)
        #expect(first.requests.isEmpty && first.due == .zero)
        #expect(try await bench.take(lane).map(\.id) == ["next"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a request expires at its deadline, before its time to live is over`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.put("a") { $0.deadline = start.date.addingTimeInterval(10) }
        #expect(try await bench.store.expire() == .seconds(10))
        bench.clock.advance(.seconds(10))
        #expect(try await isGivenUp(bench))
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(-3600), day * 365, day * -365])
    func `a wall clock that steps neither expires requests early nor keeps expired ones`(step: Duration)
        async throws
    {
        for kind in StoreKind.allCases {
            let bench = try await kind.bench()
            _ = try await put(bench)
            bench.clock.stepWall(step)
            #expect(try await bench.store.expire() == day)
            bench.clock.advance(day - .seconds(1))
            #expect(try await !isGivenUp(bench))
            #expect(try await bench.take(1, 0).isEmpty)
            bench.clock.advance(.seconds(1))
            #expect(try await isGivenUp(bench))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a wall clock of 1970 neither expires requests early nor keeps expired ones`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        bench.clock.setWall(Timestamp(milliseconds: 5000))
        bench.clock.setSynchronized(false)
        _ = try await put(bench)
        bench.clock.setWall(start)
        bench.clock.setSynchronized(true)
        #expect(try await bench.store.expire() == day)
        bench.clock.advance(day)
        #expect(try await isGivenUp(bench))
    }

    @Test(arguments: StoreKind.allCases)
    func `after a reboot the wall clock decides if it is synchronized`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        _ = try await put(bench)
        bench.clock.setSynchronized(false)
        bench.clock.advance(day)
        try await bench.reopen(afterReboot: true)
        #expect(try await !isGivenUp(bench))
        bench.clock.setSynchronized(true)
        #expect(try await isGivenUp(bench))
    }

    @Test(arguments: StoreKind.allCases)
    func `without a synchronized clock a request expires when this boot has lasted for its time to live`(
        kind: StoreKind
    )
        async throws
    {
        let bench = try await kind.bench()
        bench.clock.setSynchronized(false)
        _ = try await put(bench)
        try await bench.reopen(afterReboot: true)
        bench.clock.advance(day - .seconds(10))
        #expect(try await !isGivenUp(bench))
        bench.clock.advance(.seconds(10))
        #expect(try await isGivenUp(bench))
    }

    @Test(arguments: StoreKind.allCases)
    func `expiry follows a clock that was set before a reboot`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        bench.clock.setWall(Timestamp(milliseconds: 5000))
        _ = try await put(bench)
        bench.clock.setWall(start)
        _ = try await bench.store.expire()
        try await bench.reopen(afterReboot: true)
        #expect(try await !isGivenUp(bench))
        bench.clock.advance(day)
        #expect(try await isGivenUp(bench))
    }

    @Test(arguments: StoreKind.allCases)
    func `a clock that steps back delays only scheduled requests`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let scheduled = try await bench.put("b") { $0.notBefore = start.date.addingTimeInterval(86_400) }
        #expect(lane == scheduled)
        bench.clock.stepWall(day * -365)
        #expect(try await bench.store.restart().map(\.due) == [.zero])
        #expect(
            try await bench.take(lane).map(\.id) == ["a"],
            "`b` was scheduled by the wall clock, which is now a year behind"
        )
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a clock that steps back delays no request of a lane that always has newer ones`(
        kind: StoreKind,
        isFIFO: Bool
    ) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("old", isFIFO: isFIFO)
        let scheduled = start.date.addingTimeInterval(86_400)
        if !isFIFO { try await bench.put("later") { $0.notBefore = scheduled } }
        bench.clock.stepWall(day * -365)
        try await bench.put("new", isFIFO: isFIFO)
        #expect(try await bench.take(lane, 1).map(\.id) == ["old"])
        try await bench.put("newer", isFIFO: isFIFO)
        #expect(
            try await bench.take(lane).map(\.id) == (isFIFO ? [] : ["new", "newer"]),
            "`later` is scheduled"
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `a thousand expired requests are given up in batches`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let requests = try (0..<1000).map { index in try new("\(index)") { $0.timeToLive = .seconds(60) } }
        _ = try await bench.store.enqueue(requests)
        bench.clock.advance(.seconds(60))
        var rounds = 0
        while try await bench.store.expire() == .zero { rounds += 1 }
        #expect((1...10).contains(rounds))
        #expect(try await bench.store.counts()[.dead] == 1000)
    }
}

/// How long finished requests are kept.
@Suite struct RetentionConformance {
    @Test(arguments: StoreKind.allCases)
    func `finished requests are removed by age, dead ones later`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.finish("delivered", .delivered(status: 200))
        try await bench.finish("dead", .dead(reason: "HTTP 404"))
        bench.clock.advance(day - .seconds(1))
        _ = try await bench.store.expire()
        #expect(try await bench.store.states().count == 2)
        bench.clock.advance(.seconds(1))
        _ = try await bench.store.expire()
        #expect(try await bench.store.states() == ["dead": .dead])
        bench.clock.advance(day * 6)
        _ = try await bench.store.expire()
        #expect(try await bench.store.states().isEmpty)
        #expect(try await bench.store.details(of: "dead") == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `the newest finished requests are kept`(kind: StoreKind) async throws {
        let bench = try await kind.bench { $0.retention.doneCount = 3 }
        for id in ["a", "b", "c", "d", "e"] {
            try await bench.finish(id, .delivered(status: 200))
            bench.clock.advance(.seconds(1))
        }
        try await bench.finish("dead", .dead(reason: "HTTP 404"))
        _ = try await bench.store.expire()
        #expect(try await bench.store.all().map(\.id) == ["dead", "e", "d", "c"])
    }

    @Test(arguments: StoreKind.allCases)
    func `finished requests of one user do not displace those of others`(kind: StoreKind) async throws {
        let bench = try await kind.bench { $0.retention.doneCount = 2 }
        for (id, user) in [("old", 7), ("a", 8), ("b", 8), ("c", 8), ("none", nil)] as [(String, UInt32?)] {
            try await bench.put(id) { $0.submitter = user.map { Submitter(user: $0) } }
            _ = try await bench.store.edit(.cancel, [id])
            bench.clock.advance(.seconds(1))
        }
        _ = try await bench.store.expire()
        #expect(try await bench.store.all().map(\.id) == ["none", "c", "b", "old"])
    }

    @Test(arguments: StoreKind.allCases)
    func `over the limit of bytes, the user with most bytes loses its oldest requests`(kind: StoreKind)
        async throws
    {
        let body = String(repeating: "x", count: 100)
        let size = try new("0", body: body).size
        let bench = try await kind.bench { $0.retention.bytes = 4 * size }
        for (id, user) in [("0", 7), ("1", 8), ("2", 8), ("3", 8), ("4", 8), ("5", 7)] as [(String, UInt32)] {
            let lane = try await bench.put(id, body: body) { $0.submitter = Submitter(user: user) }
            try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        }
        while try await bench.store.expire() == .zero {}
        #expect(try await bench.store.all().map(\.id) == ["5", "4", "3", "0"])
    }

    @Test(arguments: StoreKind.allCases)
    func `one sweep removes a whole batch of the requests of equal users`(kind: StoreKind) async throws {
        let size = try new("100", method: "GET", body: "").size
        let bench = try await kind.bench { $0.retention.bytes = 50 * size }
        let requests = try (100..<700).map { index in
            try new("\(index)", method: "GET", body: "") {
                $0.submitter = Submitter(user: 7 + UInt32(index % 2))
            }
        }
        _ = try await bench.store.enqueue(requests)
        _ = try await bench.store.edit(.cancel, requests.map(\.id))
        var kept: [Int] = []
        repeat {
            _ = try await bench.store.expire()
            kept.append(try await bench.store.all().count)
        } while kept.last != kept.dropLast().last
        // A batch has 256 requests.
        #expect(kept == [344, 88, 50, 50])
        let rest = try await bench.store.all().map(\.submitter)
        #expect(rest.count { $0 == 7 } == 25 && rest.count { $0 == 8 } == 25)
    }

    @Test(arguments: StoreKind.allCases)
    func `the history stays within its limit of bytes`(kind: StoreKind) async throws {
        let bench = try await kind.bench { $0.retention.bytes = 170 }
        let body = String(repeating: "x", count: 60)
        try await bench.finish("first", .dead(reason: "HTTP 404"), body: body)
        try await bench.finish("light", .delivered(status: 200), body: body)
        try await bench.finish("second", .dead(reason: "HTTP 404"), body: body)
        _ = try await bench.store.expire()
        #expect(try await bench.store.states() == ["light": .delivered, "second": .dead])
        let answer = RecordedResponse(status: 200, headers: [], body: Data(count: 50), isTruncated: false)
        let request = try await bench.takeOne(try await bench.put("answered"))
        try await bench.store.conclude(request, .delivered(status: 200), response: answer)
        _ = try await bench.store.expire()
        #expect(try await bench.store.states() == ["second": .dead, "answered": .delivered])
    }
}

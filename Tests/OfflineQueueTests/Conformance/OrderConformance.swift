internal import Foundation
internal import OfflineQueue
internal import Testing

/// The order of claims in parallel lanes, and the budget of retries.
@Suite struct OrderConformance {
    @Test(arguments: StoreKind.allCases)
    func `higher priorities go first`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        var lane: Int64 = 0
        for (number, priority) in [5, 9, 0, 3, 0].enumerated() {
            lane = try await bench.put("\(priority)-\(number)") { $0.priority = priority }
        }
        #expect(try await bench.take(lane, 3).compactMap { $0.id.first } == ["0", "0", "3"])
        #expect(try await bench.take(lane, 3).compactMap { $0.id.first } == ["5", "9"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a waiting request gains one level of priority per ten minutes`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.put("old") { $0.priority = 6 }
        bench.clock.advance(.seconds(1190))
        var lane: Int64 = 0
        for priority in 3...6 { lane = try await bench.put("\(priority)") { $0.priority = priority } }
        #expect(try await bench.take(lane, 1).map(\.id) == ["3"])
        #expect(try await bench.take(lane, 1).map(\.id) == ["4"], "less than 20 minutes for two levels")
        try await bench.put("new") { $0.priority = 4 }
        #expect(try await bench.take(lane, 1).map(\.id) == ["new"])
        bench.clock.advance(.seconds(10))
        try await bench.put("newer") { $0.priority = 4 }
        #expect(
            try await bench.take(lane, 3).map(\.id) == ["newer", "old", "5"],
            "equal: the priority decides"
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `a constant stream of requests of priority 0 does not starve a request of priority 9`(
        kind: StoreKind
    )
        async throws
    {
        let minutes = try await minutesUntilLast(try await kind.bench())
        #expect(minutes == 91, "nine levels of ten minutes each, and the priority decides at 90 minutes")
        let unaged = try await kind.bench { $0.ageingStep = .seconds(365 * 86_400) }
        #expect(try await minutesUntilLast(unaged) == nil, "without ageing it would starve")
    }

    /// Returns how many minutes a request of priority 9 waits; `nil` if more than 200. Each minute, one request of
    /// priority 0 arrives, and one request is claimed.
    private func minutesUntilLast(_ bench: StoreBench) async throws -> Int? {
        try await bench.put("last") { $0.priority = 9 }
        for minute in 0..<200 {
            let lane = try await bench.put("\(minute)") { $0.priority = 0 }
            let taken = try await bench.takeOne(lane)
            if taken.id == "last" { return minute }
            try await bench.store.conclude(taken, .delivered(status: 200))
            bench.clock.advance(.seconds(60))
        }
        return nil
    }

    @Test(arguments: StoreKind.allCases)
    func `one claim takes requests of several priorities in the order of their ranks`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        var (lane, ranks) = (Int64(0), [(rank: Int, id: String)]())
        for index in 0..<24 {
            let priority = [0, 4, 1, 9, 2][index % 5]
            lane = try await bench.put("\(index)") { $0.priority = priority }
            // No two ranks are equal: the sum of the steps is not a multiple of ten minutes.
            ranks.append((index * 47 + priority * 600, "\(index)"))
            bench.clock.advance(.seconds(47))
        }
        let expected = ranks.sorted { $0.rank < $1.rank }.map(\.id)
        #expect(try await bench.take(lane, 24).map(\.id) == expected)
    }

    @Test(arguments: StoreKind.allCases)
    func `a claim postpones the retries that its allowance does not permit`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        var lane: Int64 = 0
        for id in ["a", "b", "c", "d"] { lane = try await bench.put(id) }
        for request in try await bench.take(lane) {
            try await bench.store.conclude(request, .retry(countsAsAttempt: true))
        }
        try await bench.put("new")
        let allowance = RetryAllowance(count: 1, wait: .seconds(3))
        let batch = try await bench.store.claim(8, of: lane, retries: allowance)
        #expect(batch.requests.map(\.id) == ["a", "new"])
        #expect(batch.due == .seconds(3))
        bench.clock.advance(.seconds(4))
        #expect(try await bench.take(lane).map(\.id) == ["b", "c"], "the others follow one second apart")
        bench.clock.advance(.seconds(1))
        #expect(try await bench.take(lane).map(\.id) == ["d"])
    }

    @Test(arguments: StoreKind.allCases)
    func `an attempt that did not count is followed by a first attempt`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        try await bench.store.conclude(try await bench.takeOne(lane), .retry(countsAsAttempt: false))
        let allowance = RetryAllowance(count: 0, wait: .seconds(3))
        #expect(try await bench.store.claim(8, of: lane, retries: allowance).requests.map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the allowance also postpones the head of a FIFO lane`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a", isFIFO: true)
        try await bench.put("b", isFIFO: true)
        try await bench.store.conclude(try await bench.takeOne(lane), .retry(countsAsAttempt: true))
        let allowance = RetryAllowance(count: 0, wait: .seconds(3))
        let batch = try await bench.store.claim(1, of: lane, retries: allowance)
        #expect(batch.requests.isEmpty && batch.due == .seconds(3))
        bench.clock.advance(.seconds(3))
        #expect(try await bench.takeOne(lane).id == "a")
    }
}

internal import Foundation
internal import OfflineQueue
internal import Testing

/// Durations and ages do not depend on the wall clock, which may be set at any time and may be wrong after a boot.
@Suite struct ClockConformance {
    private static let steps = [
        .seconds(1800), .seconds(-1800), day * 40, day * -40, day * 365 * 80, day * -365 * 56,
    ]

    // MARK: Finished requests

    /// A bench whose clock is 40 days behind and not synchronized, with a dead and a delivered request.
    private func benchWithHistory(_ kind: StoreKind) async throws -> StoreBench {
        let bench = try await kind.bench()
        try await setBehind(bench)
        try await bench.finish("dead", .dead(reason: "HTTP 410"))
        try await bench.finish("delivered", .delivered(status: 200))
        return bench
    }

    private func setBehind(_ bench: StoreBench) async throws {
        bench.clock.setSynchronized(false)
        bench.clock.stepWall(day * -40)
        try await bench.reopen(afterReboot: true)
    }

    private func synchronize(_ bench: StoreBench) {
        bench.clock.stepWall(day * 40)
        bench.clock.setSynchronized(true)
    }

    private func remembered(_ bench: StoreBench) async throws -> [String] {
        while try await bench.store.expire() == .zero {}
        return try await bench.store.states().keys.sorted()
    }

    @Test(arguments: StoreKind.allCases)
    func `a correction of the clock forgets no finished request, and changes its dates`(kind: StoreKind)
        async throws
    {
        let bench = try await benchWithHistory(kind)
        synchronize(bench)
        #expect(try await remembered(bench) == ["dead", "delivered"])
        let dead = try await bench.summary("dead")
        #expect(dead.finished == bench.clock.now.wall.date && dead.created == dead.finished)
    }

    @Test(arguments: StoreKind.allCases)
    func `finished requests are forgotten after their retention period, whatever the clock showed`(
        kind: StoreKind
    )
        async throws
    {
        let bench = try await benchWithHistory(kind)
        synchronize(bench)
        bench.clock.advance(bench.settings.retention.done - .seconds(1))
        #expect(try await remembered(bench) == ["dead", "delivered"])
        bench.clock.advance(.seconds(1))
        #expect(try await remembered(bench) == ["dead"])
        bench.clock.advance(bench.settings.retention.dead)
        #expect(try await remembered(bench).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a clock that is ahead after a reboot and not synchronized forgets nothing`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        try await bench.finish("dead", .dead(reason: "HTTP 410"))
        bench.clock.stepWall(day * 365)
        bench.clock.setSynchronized(false)
        try await bench.reopen(afterReboot: true)
        #expect(try await remembered(bench) == ["dead"])
        bench.clock.advance(bench.settings.retention.dead)
        #expect(try await remembered(bench).isEmpty, "this boot has lasted for the retention period")
    }

    // MARK: Boots without synchronization

    @Test(arguments: StoreKind.allCases)
    func `nothing is lost if the clock was never synchronized before a reboot`(kind: StoreKind) async throws {
        let bench = try await benchWithHistory(kind)
        try await bench.put("waiting") { $0.timeToLive = .seconds(3600) }
        bench.clock.advance(.seconds(60))
        try await bench.put("later") { $0.timeToLive = .seconds(3600) }
        try await bench.reopen(afterReboot: true)
        synchronize(bench)
        #expect(try await bench.store.expire() == .seconds(3540))
        #expect(try await remembered(bench) == ["dead", "delivered", "later", "waiting"])
        bench.clock.advance(.seconds(3600))
        _ = try await bench.store.expire()
        #expect(try await bench.state("waiting") == .dead)
        #expect(try await bench.state("later") == .dead)
    }

    @Test(arguments: StoreKind.allCases)
    func `nothing is lost if a boot without synchronization stored nothing and forgot a finished request`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench()
        try await setBehind(bench)
        try await bench.put("waiting") { $0.timeToLive = day * 30 }
        bench.clock.advance(.seconds(60))
        try await bench.finish("delivered", .delivered(status: 200))
        try await bench.reopen(afterReboot: true)
        bench.clock.advance(bench.settings.retention.done)
        #expect(try await remembered(bench) == ["waiting"])
        try await bench.reopen(afterReboot: true)
        synchronize(bench)
        _ = try await bench.store.expire()
        #expect(try await bench.state("waiting") == .pending)
    }

    @Test(arguments: StoreKind.allCases)
    func `a date that was set by hand after synchronization does not outlast the boot`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        try await bench.put("a") { $0.timeToLive = day }
        bench.clock.setSynchronized(false)
        bench.clock.stepWall(day * 365 * 80)
        _ = try await bench.store.expire()
        bench.clock.stepWall(day * -365 * 80)
        bench.clock.setSynchronized(true)
        try await bench.reopen(afterReboot: true)
        bench.clock.advance(day)
        _ = try await bench.store.expire()
        #expect(try await bench.state("a") == .dead)
    }

    // MARK: Closures

    /// Closes the lane of a request for 20 s.
    private func close(_ bench: StoreBench) async throws {
        let request = try await bench.takeOne(try await bench.put("a"))
        let verdict = Verdict.retry(countsAsAttempt: true)
        try await bench.store.conclude(request, verdict, delay: .seconds(20), laneClosure: .seconds(20))
    }

    @Test(arguments: StoreKind.allCases, steps)
    func `a closure lasts as long as the server asked`(kind: StoreKind, step: Duration) async throws {
        let bench = try await kind.bench()
        try await close(bench)
        bench.clock.stepWall(step)
        #expect(try await bench.reopen()[0].notBefore == .seconds(20))
        _ = try await bench.store.expire()
        let end = bench.clock.now.wall.date.addingTimeInterval(20)
        #expect(try await bench.summary("a").laneClosure?.until == end)
        bench.clock.advance(.seconds(20))
        #expect(try await bench.reopen()[0].notBefore == nil)
    }

    @Test(arguments: StoreKind.allCases, steps)
    func `after a reboot with a wrong clock, a closure lasts at most as long as the server asked`(
        kind: StoreKind,
        step: Duration
    ) async throws {
        let bench = try await kind.bench()
        try await close(bench)
        bench.clock.advance(.seconds(5))
        bench.clock.setSynchronized(false)
        bench.clock.stepWall(step)
        #expect(try await bench.reopen(afterReboot: true)[0].notBefore == .seconds(20))
        bench.clock.advance(.seconds(20))
        #expect(try await bench.reopen()[0].notBefore == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a closure continues while the machine is off, if the clock is synchronized`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        try await close(bench)
        bench.clock.advance(.seconds(5))
        #expect(try await bench.reopen(afterReboot: true)[0].notBefore == .seconds(15))
    }

    @Test(arguments: StoreKind.allCases)
    func `a reboot does not restart a closure`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await close(bench)
        bench.clock.advance(.seconds(5))
        #expect(try await bench.reopen(afterReboot: true)[0].notBefore == .seconds(15))
        bench.clock.setSynchronized(false)
        #expect(try await bench.reopen(afterReboot: true)[0].notBefore == .seconds(15))
        bench.clock.advance(.seconds(15))
        _ = try await bench.store.expire()
        #expect(try await bench.reopen(afterReboot: true)[0].notBefore == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a clock that is set closes no lane again`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await close(bench)
        var events = try await bench.store.events().makeAsyncIterator()
        bench.clock.stepWall(day)
        _ = try await bench.store.expire()
        #expect(events.publishedBatch().filter { $0.kind == .laneClosed }.isEmpty)
    }

    // MARK: Any operation

    /// What a user can observe of a queue, in durations.
    private struct Outcome: Equatable {
        var claimed: [String] = []
        var states: [[String: QueuedRequest.State]] = []
        var closures: [Duration?] = []
        var expiries: [Duration?] = []
        var conflictAges: [Duration?] = []
    }

    /// Runs every kind of operation, and sets the wall clock before one of them.
    ///
    /// - Parameter steps: The steps of the wall clock, by the number of the operation.
    private func outcome(_ kind: StoreKind, _ steps: [Int: Duration]) async throws -> (
        Outcome, operations: Int
    ) {
        let bench = try await kind.bench()
        var (outcome, count) = (Outcome(), 0)
        @discardableResult
        func operation<Value>(_ body: () async throws -> Value) async throws -> Value {
            if let step = steps[count] { bench.clock.stepWall(step) }
            count += 1
            let value = try await body()
            // Not every time, because the sweep adjusts the dates, too.
            if count % 2 == 0 { outcome.expiries.append(try await bench.store.expire()) }
            outcome.states.append(try await bench.store.states())
            bench.clock.advance(.seconds(10))
            return value
        }
        let (retry, hour) = (Verdict.retry(countsAsAttempt: true), Duration.seconds(3600))
        let lane = try await operation { try await bench.put("a") { $0.timeToLive = hour } }
        try await operation { try await bench.put("b") { $0.timeToLive = hour * 2 } }
        for _ in 0..<2 {
            for sent in try await operation({ try await bench.take(lane) }) {
                outcome.claimed.append(sent.id)
                outcome.conflictAges.append(sent.conflictAge)
                try await operation {
                    try await bench.store.conclude(sent, retry, delay: .seconds(5), status: 409)
                }
            }
        }
        for sent in try await operation({ try await bench.take(lane) }) {
            outcome.conflictAges.append(sent.conflictAge)
            try await operation {
                try await bench.store.conclude(sent, retry, delay: .seconds(40), laneClosure: .seconds(40))
            }
        }
        for _ in 0..<5 {
            let lanes = try await operation { try await bench.reopen() }
            outcome.closures.append(lanes.first?.notBefore)
        }
        try await operation { try await bench.store.edit(.hold, ["b"]) }
        try await operation { try await bench.store.edit(.release, ["b"]) }
        for request in try await operation({ try await bench.take(lane) }) {
            outcome.claimed.append(request.id)
            let verdict: Verdict = request.id == "a" ? .delivered(status: 200) : .dead(reason: "HTTP 410")
            try await operation { try await bench.store.conclude(request, verdict) }
        }
        try await operation { try await bench.store.edit(.retry(newKey: false), ["b"]) }
        try await operation { try await bench.store.edit(.cancel, ["b"]) }
        return (outcome, count)
    }

    @Test(arguments: StoreKind.allCases, steps)
    func `a step of the clock at any operation changes no outcome`(kind: StoreKind, step: Duration)
        async throws
    {
        let (expected, operations) = try await outcome(kind, [:])
        #expect(expected.closures == [.seconds(30), .seconds(20), .seconds(10), nil, nil])
        for place in 0..<operations {
            let (forward, _) = try await outcome(kind, [place: step])
            #expect(forward == expected, "set before operation \(place)")
            let (back, _) = try await outcome(kind, [place: step, place + 3: .zero - step])
            #expect(back == expected, "set before operation \(place), and corrected")
        }
    }
}

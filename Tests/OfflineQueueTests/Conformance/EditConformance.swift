internal import Foundation
internal import OfflineQueue
internal import Testing

/// Edits of requests: cancelling (T5), retrying (T7), holding and releasing.
@Suite struct EditConformance {
    private func edit(_ bench: StoreBench, _ edit: QueueEdit, _ id: String) async throws -> EditResult {
        try await bench.store.edit(edit, [id])[0]
    }

    @Test(arguments: StoreKind.allCases)
    func `a waiting request is cancelled immediately`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        for id in ["pending", "held", "blocked"] {
            try await bench.put(id, host: id) { if id == "blocked" { $0.dependencies = ["pending"] } }
        }
        _ = try await edit(bench, .hold, "held")
        for id in ["blocked", "held", "pending"] {
            #expect(try await edit(bench, .cancel, id) == .done(.cancelled))
        }
        #expect(try await edit(bench, .cancel, "held") == .refused(.cancelled))
        #expect(try await edit(bench, .cancel, "nobody") == .unknown)
        #expect(try await bench.store.statistics().requests == 0)
    }

    @Test(arguments: [
        (Verdict.retry(countsAsAttempt: true), QueuedRequest.State.cancelled), (.held(.auth), .cancelled),
        (.delivered(status: 200), .delivered), (.dead(reason: "HTTP 404"), .dead),
    ])
    func `a request in flight is cancelled when its attempt ends, unless it was delivered`(
        verdict: Verdict,
        state: QueuedRequest.State
    ) async throws {
        for kind in StoreKind.allCases {
            let bench = try await kind.bench()
            let sent = try await bench.takeOne(try await bench.put("a"))
            #expect(try await edit(bench, .cancel, "a") == .done(.inflight))
            #expect(try await edit(bench, .hold, "a") == .done(.inflight), "the cancellation remains")
            #expect(try await edit(bench, .release, "a") == .refused(.inflight))
            try await bench.store.conclude(sent, verdict)
            #expect(try await bench.state("a") == state)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an edit of all requests cancels those in flight when their attempts end`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let sent = try await bench.takeOne(try await bench.put("a"))
        try await bench.put("b")
        let edited = try await bench.store.edit(.cancel, matching: RequestFilter(), isDryRun: false)
        #expect(edited.result.done == 2)
        #expect(try await bench.store.states() == ["a": .inflight, "b": .cancelled])
        try await bench.store.conclude(sent, .retry(countsAsAttempt: true))
        #expect(try await bench.state("a") == .cancelled)
    }

    @Test(arguments: StoreKind.allCases)
    func `a pending cancellation takes effect after a crash`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("cancelled")
        try await bench.put("held")
        try await bench.take(lane)
        _ = try await edit(bench, .cancel, "cancelled")
        _ = try await edit(bench, .hold, "held")
        try await bench.reopen()
        #expect(try await bench.store.states() == ["cancelled": .cancelled, "held": .held])
        #expect(try await bench.summary("held").holdReason == .user)
    }

    @Test(arguments: StoreKind.allCases)
    func `a held request waits for a release, through restarts and flushes`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        #expect(try await edit(bench, .hold, "a") == .done(.held))
        #expect(try await edit(bench, .hold, "a") == .done(.held))
        try await bench.reopen(releasing: HoldReason.releasableByRestart)
        _ = try await bench.store.reopen(releasing: HoldReason.releasableByRestart)
        #expect(try await bench.take(lane).isEmpty)
        #expect(try await edit(bench, .release, "a") == .done(.pending))
        #expect(try await bench.take(lane).map(\.id) == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a request in flight is held when its attempt ends, unless it is released before`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let first = try await bench.takeOne(lane)
        _ = try await edit(bench, .hold, "a")
        try await bench.store.conclude(first, .retry(countsAsAttempt: true))
        #expect(try await bench.summary("a").holdReason == .user)
        _ = try await edit(bench, .release, "a")
        let second = try await bench.takeOne(lane)
        _ = try await edit(bench, .hold, "a")
        #expect(try await edit(bench, .release, "a") == .done(.inflight))
        try await bench.store.conclude(second, .retry(countsAsAttempt: true))
        #expect(try await bench.state("a") == .pending)
    }

    @Test(arguments: StoreKind.allCases)
    func `a dead request is retried with its body, key and position`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a", isFIFO: true, body: "the body")
        try await bench.put("b", isFIFO: true)
        let place = try await bench.summary("a").sequence
        let first = try await bench.takeOne(lane)
        try await bench.store.conclude(first, .dead(reason: "HTTP 404"), status: 404)
        try await bench.reopen()
        #expect(try await edit(bench, .retry(newKey: false), "a") == .done(.pending))
        let summary = try await bench.summary("a")
        #expect(summary.sequence == place && summary.attempts == 0 && summary.finished == nil)
        let again = try await bench.takeOne(lane)
        #expect(again.id == "a" && again.body == .inline(Data("the body".utf8)))
        #expect(again.key == first.key && again.headers == first.headers && again.url == first.url)
    }

    @Test(arguments: StoreKind.allCases)
    func `a dead request can be retried with a new key`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await bench.put("a")
        let first = try await bench.takeOne(lane)
        try await bench.store.conclude(first, .dead(reason: "HTTP 422"))
        #expect(try await edit(bench, .retry(newKey: true), "a") == .done(.pending))
        let second = try await bench.takeOne(lane)
        #expect(second.key?.value != first.key?.value && second.key?.value.count == 36)
        #expect(second.key?.name == first.key?.name)
    }

    @Test(arguments: StoreKind.allCases)
    func `a retried dead request gets its full time to live each time`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.put("a") { $0.timeToLive = .seconds(100) }
        for _ in 0..<3 {
            bench.clock.advance(.seconds(100))
            _ = try await bench.store.expire()
            #expect(try await bench.state("a") == .dead)
            #expect(try await edit(bench, .retry(newKey: false), "a") == .done(.pending))
            #expect(try await bench.store.expire() == .seconds(100))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a dead request is cancelled once, and can no longer be retried`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        for id in ["a", "b", "c"] { try await bench.finish(id, .dead(reason: "HTTP 404")) }
        bench.clock.advance(.seconds(60))
        #expect(try await edit(bench, .cancel, "a") == .done(.cancelled))
        #expect(try await edit(bench, .cancel, "a") == .refused(.cancelled))
        #expect(try await edit(bench, .retry(newKey: false), "a") == .refused(.cancelled))
        #expect(try await bench.summary("a").finished == (start + .seconds(60)).date)
        let dead = RequestFilter(states: [.dead])
        #expect(try await bench.store.edit(.cancel, matching: dead, isDryRun: true).result.done == 2)
        #expect(try await bench.store.edit(.cancel, matching: dead, isDryRun: false).result.done == 2)
        #expect(Set(try await bench.store.states().values) == [.cancelled])
        let bodies = try await bench.store.archive.inspect()
        #expect(bodies.findings.isEmpty, "\(bodies.findings)")
    }

    @Test(arguments: StoreKind.allCases)
    func `a request that its sender withdraws stays dead, and can be retried, if it was given up before`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench()
        try await bench.finish("dead", .dead(reason: "HTTP 404"))
        try await bench.put("waiting")
        #expect(try await edit(bench, .withdraw, "dead") == .refused(.dead))
        #expect(try await edit(bench, .withdraw, "waiting") == .done(.cancelled))
        #expect(try await edit(bench, .retry(newKey: false), "dead") == .done(.pending))
    }

    @Test(arguments: StoreKind.allCases)
    func `only dead and waiting requests can be retried`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.finish("delivered", .delivered(status: 200))
        try await bench.put("cancelled")
        _ = try await edit(bench, .cancel, "cancelled")
        let lane = try await bench.put("inflight", host: "x")
        try await bench.take(lane)
        #expect(try await edit(bench, .retry(newKey: false), "delivered") == .refused(.delivered))
        #expect(try await edit(bench, .retry(newKey: false), "cancelled") == .refused(.cancelled))
        #expect(try await edit(bench, .retry(newKey: false), "inflight") == .refused(.inflight))
        #expect(try await edit(bench, .retry(newKey: false), "nobody") == .unknown)
        try await bench.put("blocked", host: "y") { $0.dependencies = ["inflight"] }
        #expect(try await edit(bench, .retry(newKey: false), "blocked") == .done(.pending))
    }

    @Test(arguments: StoreKind.allCases)
    func `the states of several requests are read in one call`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.put("a")
        let results = try await bench.store.edit(.cancel, ["a", "nobody", "a"])
        #expect(results == [.done(.cancelled), .unknown, .refused(.cancelled)])
    }
}

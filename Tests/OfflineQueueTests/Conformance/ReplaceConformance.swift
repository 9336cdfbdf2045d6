internal import Foundation
internal import OfflineQueue
internal import Testing

/// Replacement (T1b): a newer request replaces an older one with the same replace key.
@Suite struct ReplaceConformance {
    private func put(_ bench: StoreBench, _ id: String, host: String = "example.com") async throws -> Int64 {
        try await bench.put(id, host: host) { $0.replaceKey = "k" }
    }

    @Test(arguments: StoreKind.allCases)
    func `a waiting request is superseded, in its own lane only`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        _ = try await put(bench, "a")
        _ = try await put(bench, "other", host: "other")
        try await bench.put("keyless")
        _ = try await put(bench, "b")
        #expect(
            try await bench.store.states()
                == ["a": .superseded, "b": .pending, "other": .pending, "keyless": .pending]
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `held and blocked requests are superseded too`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        _ = try await put(bench, "a")
        _ = try await bench.store.edit(.hold, ["a"])
        try await bench.put("x")
        try await bench.put("b") {
            $0.replaceKey = "k"
            $0.dependencies = ["x"]
        }
        #expect(try await bench.state("a") == .superseded)
        #expect(try await bench.state("b") == .blocked)
        _ = try await put(bench, "c")
        #expect(try await bench.state("b") == .superseded)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request in flight is not replaced, and is superseded when its attempt ends`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        let sent = try await bench.takeOne(lane)
        _ = try await put(bench, "b")
        #expect(try await bench.store.states() == ["a": .inflight, "b": .blocked])
        try await bench.store.conclude(sent, .retry(countsAsAttempt: true))
        #expect(try await bench.store.states() == ["a": .superseded, "b": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `a replaced request in flight may still be delivered`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let sent = try await bench.takeOne(try await put(bench, "a"))
        _ = try await put(bench, "b")
        try await bench.store.conclude(sent, .delivered(status: 200))
        #expect(try await bench.store.states() == ["a": .delivered, "b": .pending])
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `of two retried requests with the same replace key the newer one is kept`(
        kind: StoreKind,
        isNewerFirst: Bool
    ) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        let older = try await bench.takeOne(lane)
        _ = try await put(bench, "b")
        // `b` would wait until `a` has ended. A manual retry removes that condition.
        _ = try await bench.store.edit(.retry(newKey: false), ["b"])
        let newer = try await bench.takeOne(lane)
        for request in isNewerFirst ? [newer, older] : [older, newer] {
            try await bench.store.conclude(request, .retry(countsAsAttempt: true))
        }
        #expect(try await bench.store.states() == ["a": .superseded, "b": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `of two requests in flight during a crash the newer one is kept`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        _ = try await bench.takeOne(lane)
        _ = try await put(bench, "b")
        _ = try await bench.store.edit(.retry(newKey: false), ["b"])
        _ = try await bench.takeOne(lane)
        try await bench.reopen()
        #expect(try await bench.store.states() == ["a": .superseded, "b": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `a dead request cannot be retried while its replacement waits`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "HTTP 404"))
        _ = try await put(bench, "b")
        #expect(try await bench.store.edit(.retry(newKey: false), ["a"]) == [.refused(.dead)])
        _ = try await bench.store.edit(.cancel, ["b"])
        #expect(try await bench.store.edit(.retry(newKey: false), ["a"]) == [.done(.pending)])
    }

    @Test(arguments: StoreKind.allCases)
    func `dependents of a replaced request wait for its replacement`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        try await bench.put("dependent", host: "other") { $0.dependencies = ["a"] }
        _ = try await put(bench, "b")
        #expect(try await bench.store.details(of: "dependent")?.dependencies == ["b"])
        // The same applies to a request that is superseded when its attempt ends.
        let sent = try await bench.takeOne(lane)
        _ = try await put(bench, "c")
        try await bench.store.conclude(sent, .retry(countsAsAttempt: true))
        #expect(try await bench.store.details(of: "dependent")?.dependencies == ["c"])
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200))
        #expect(try await bench.state("dependent") == .pending)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request cannot replace its own dependency`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        _ = try await put(bench, "a")
        let error = try await #require(throws: QueueError.self) {
            try await bench.put("b") {
                $0.replaceKey = "k"
                $0.dependencies = ["a"]
            }
        }
        #expect(error.code == .cyclicDependency)
        #expect(try await bench.store.states() == ["a": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `no request waits forever when the replacement depends on a dependent`(kind: StoreKind) async throws
    {
        let bench = try await kind.bench()
        _ = try await put(bench, "a")
        try await bench.put("between", host: "other") { $0.dependencies = ["a"] }
        try await bench.put("b") {
            $0.replaceKey = "k"
            $0.dependencies = ["between"]
        }
        #expect(try await bench.summary("between").holdReason == .dependency)
        _ = try await bench.store.edit(.release, ["between"])
        #expect(try await bench.waiting() == ["between": .pending, "b": .blocked])
    }
}

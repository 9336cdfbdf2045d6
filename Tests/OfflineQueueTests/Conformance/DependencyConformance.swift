internal import Foundation
internal import OfflineQueue
internal import Testing

/// Requests that wait until other requests are delivered.
@Suite struct DependencyConformance {
    private func put(_ bench: StoreBench, _ id: String, after dependencies: [String] = []) async throws
        -> Int64
    {
        try await bench.put(id, host: id) { $0.dependencies = dependencies }
    }

    private func refusal(_ bench: StoreBench, _ requests: [NewRequest]) async throws -> QueueError.Code {
        try await #require(throws: QueueError.self) { try await bench.store.enqueue(requests) }.code
    }

    @Test(arguments: StoreKind.allCases)
    func `a request is sent once all its dependencies are delivered`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let (a, b) = (try await put(bench, "a"), try await put(bench, "b"))
        let lane = try await put(bench, "c", after: ["a", "b"])
        try await bench.store.conclude(try await bench.takeOne(a), .delivered(status: 200))
        #expect(try await bench.take(lane).isEmpty)
        #expect(try await bench.store.details(of: "c")?.dependencies == ["b"])
        try await bench.reopen()
        try await bench.store.conclude(try await bench.takeOne(b), .delivered(status: 200))
        #expect(try await bench.take(lane).map(\.id) == ["c"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a request does not wait for a dependency that was already delivered`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.finish("a", .delivered(status: 200))
        _ = try await put(bench, "b", after: ["a"])
        #expect(try await bench.state("b") == .pending)
    }

    @Test(arguments: StoreKind.allCases)
    func `a blocked request keeps its scheduled time`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let a = try await put(bench, "a")
        let lane = try await bench.put("b", host: "b") {
            $0.dependencies = ["a"]
            $0.notBefore = start.date.addingTimeInterval(60)
        }
        try await bench.store.conclude(try await bench.takeOne(a), .delivered(status: 200))
        #expect(try await bench.take(lane).isEmpty)
        bench.clock.advance(.seconds(60))
        #expect(try await bench.take(lane).map(\.id) == ["b"])
    }

    @Test(arguments: ["dead", "cancelled", "expired", "dropped"])
    func `a request is held when a dependency will not be delivered`(how: String) async throws {
        for kind in StoreKind.allCases {
            let bench = try await kind.bench {
                $0.limits.requests = 3
                $0.limits.laneShare = 1
            }
            let a = try await bench.put("a", host: "a") { $0.timeToLive = .seconds(60) }
            let lane = try await put(bench, "b", after: ["a"])
            _ = try await put(bench, "c", after: ["b"])
            switch how {
            case "dead":
                try await bench.store.conclude(try await bench.takeOne(a), .dead(reason: "HTTP 404"))
            case "cancelled": _ = try await bench.store.edit(.cancel, ["a"])
            case "expired":
                bench.clock.advance(.seconds(60))
                _ = try await bench.store.expire()
            default: try await bench.put("d", host: "d") { $0.whenFull = .dropOldest }
            }
            #expect(try await bench.summary("b").holdReason == .dependency)
            #expect(try await bench.state("c") == .blocked, "`c` waits for `b`, which is only held")
            #expect(try await bench.take(lane).isEmpty)
            _ = try await bench.store.edit(.release, ["b"])
            #expect(try await bench.take(lane).map(\.id) == ["b"])
        }
    }

    @Test(arguments: [QueueEdit.release, .retry(newKey: false)], [false, true])
    func `a request released without its dependency no longer reports the failed dependency`(
        edit: QueueEdit,
        byFilter: Bool
    ) async throws {
        for kind in StoreKind.allCases {
            let bench = try await kind.bench()
            _ = try await put(bench, "a")
            let lane = try await put(bench, "b", after: ["a"])
            _ = try await bench.store.edit(.cancel, ["a"])
            #expect(try await bench.summary("b").lastError == "depends on `a`, which is cancelled")
            if byFilter {
                _ = try await bench.store.edit(edit, matching: RequestFilter(host: "b"), isDryRun: false)
            } else {
                _ = try await bench.store.edit(edit, ["b"])
            }
            #expect(try await bench.summary("b").lastError == nil)
            try await bench.store.conclude(
                try await bench.takeOne(lane),
                .held(.auth),
                status: 401,
                detail: "HTTP 401"
            )
            _ = try await bench.store.edit(.release, ["b"])
            #expect(try await bench.summary("b").lastError == "HTTP 401", "the error of an attempt stays")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `holding and releasing a request does not remove its dependencies`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        _ = try await put(bench, "a")
        let lane = try await put(bench, "b", after: ["a"])
        _ = try await bench.store.edit(.hold, ["b"])
        _ = try await bench.store.edit(.release, ["b"])
        #expect(try await bench.state("b") == .blocked)
        _ = try await bench.store.edit(.hold, ["b"])
        _ = try await bench.store.edit(.cancel, ["a"])
        #expect(try await bench.summary("b").holdReason == .dependency)
        #expect(try await bench.take(lane).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a dependency on an unknown or dead request is refused`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.finish("dead", .dead(reason: "HTTP 404"))
        #expect(
            try await refusal(bench, [try new("a") { $0.dependencies = ["nobody"] }]) == .unknownDependency
        )
        #expect(try await refusal(bench, [try new("a") { $0.dependencies = ["dead"] }]) == .unknownDependency)
        #expect(try await bench.waiting().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `requests of one call may depend on each other in any order`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let last = try new("last", host: "last") { $0.dependencies = ["middle", "first"] }
        let middle = try new("middle", host: "middle") { $0.dependencies = ["first"] }
        let lanes = try await bench.store.enqueue(last, middle, try new("first", host: "first")).map(
            \.lane.id
        )
        #expect(try await bench.waiting() == ["last": .blocked, "middle": .blocked, "first": .pending])
        for (lane, id) in zip(lanes.reversed(), ["first", "middle", "last"]) {
            let request = try await bench.takeOne(lane)
            #expect(request.id == id)
            try await bench.store.conclude(request, .delivered(status: 200))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a dependency cycle is refused and named`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let circle = [("a", "c"), ("b", "a"), ("c", "b")]
        let requests = try circle.map { id, needed in try new(id) { $0.dependencies = [needed] } }
        let error = try await #require(throws: QueueError.self) {
            try await bench.store.enqueue([try new("d")] + requests)
        }
        #expect(error.code == .cyclicDependency)
        for id in ["a", "b", "c"] { #expect(error.message.contains("`\(id)`")) }
        #expect(try await bench.waiting().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `no request waits forever for a request that its own batch dropped or replaced`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench {
            $0.limits.requests = 3
            $0.limits.laneShare = 1
        }
        // `a` is dropped to make room for `d`, which depends on it.
        for id in ["a", "b", "c"] { _ = try await put(bench, id) }
        try await bench.put("d", host: "d") {
            $0.dependencies = ["a"]
            $0.whenFull = .dropOldest
        }
        #expect(try await bench.summary("d").holdReason == .dependency)
        _ = try await bench.store.edit(.cancel, ["b", "c", "d"])
        // The queue is full, so `h` is dropped. `g` of the same call, which depends on `h`, was already stored.
        try await bench.put("e", host: "e")
        try await bench.put("f", host: "f")
        try await bench.store.enqueue(
            try new("g", host: "g") { $0.dependencies = ["h"] },
            try new("h", host: "h") { $0.whenFull = .dropNewest }
        )
        #expect(try await bench.summary("g").holdReason == .dependency)
        _ = try await bench.store.edit(.cancel, ["e", "f", "g"])
        // One call adds `j`, which depends on `i`, and then replaces `i` with `k`.
        try await bench.put("i", host: "x") { $0.replaceKey = "k" }
        try await bench.store.enqueue(
            try new("j", host: "j") { $0.dependencies = ["i"] },
            try new("k", host: "x") { $0.replaceKey = "k" }
        )
        #expect(try await bench.store.details(of: "j")?.dependencies == ["k"])
    }
}

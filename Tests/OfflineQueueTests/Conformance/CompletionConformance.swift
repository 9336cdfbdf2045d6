internal import Foundation
internal import OfflineQueue
internal import Testing

/// Tags, and the completions that the store keeps for their handlers.
@Suite(.timeLimit(.minutes(5))) struct CompletionConformance {
    private func put(_ bench: StoreBench, _ id: String, tag: String? = "t") async throws -> Int64 {
        try await bench.put(id, host: "\(id).example") { $0.tag = tag }
    }

    /// Returns the ids of the requests that wait for the handler of a tag, in the order of their ends.
    private func completed(_ bench: StoreBench, _ tag: String = "t") async throws -> [String] {
        var (ids, position): ([String], Int64) = ([], 0)
        while let next = try await bench.store.completion(of: tag, after: position) {
            ids.append(next.request.summary.id)
            position = next.position
        }
        return ids
    }

    @Test(arguments: StoreKind.allCases)
    func `lists and edits select requests by their tag`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        for (id, tag) in [("a", "t"), ("b", "u"), ("c", "t"), ("d", nil)] {
            _ = try await put(bench, id, tag: tag)
        }
        var query = RequestQuery()
        query.tag = "t"
        #expect(try await bench.store.page(query).requests.map(\.id) == ["a", "c"])
        let filter = RequestFilter(states: [.pending], tag: "t")
        #expect(try await bench.store.edit(.cancel, matching: filter, isDryRun: true).result.done == 2)
        #expect(try await bench.store.edit(.cancel, matching: filter, isDryRun: false).result.done == 2)
        #expect(try await bench.waiting() == ["b": .pending, "d": .pending])
        // The list of finished requests begins with the newest one.
        #expect(try await bench.store.page(query).requests.map(\.id) == ["c", "a"])
        #expect(try await bench.summary("a").tag == "t")
    }

    @Test(arguments: StoreKind.allCases)
    func `every end of a request with a tag is kept, in order and after a restart`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        for (id, verdict) in [("delivered", Verdict.delivered(status: 200)), ("dead", .dead(reason: "no"))] {
            let request = try await bench.takeOne(try await put(bench, id))
            let response = RecordedResponse(
                status: 200,
                headers: [],
                body: Data("body".utf8),
                isTruncated: false
            )
            try await bench.store.conclude(request, verdict, status: 200, response: response)
        }
        _ = try await put(bench, "cancelled")
        _ = try await bench.store.edit(.cancel, ["cancelled"])
        _ = try await put(bench, "filtered")
        _ = try await bench.store.edit(.cancel, matching: RequestFilter(tag: "t"), isDryRun: false)
        for id in ["superseded", "newer"] {
            try await bench.put(id) {
                $0.replaceKey = "k"
                $0.tag = id == "newer" ? nil : "t"
            }
        }
        try await bench.put("expired") {
            $0.tag = "t"
            $0.timeToLive = .seconds(1)
        }
        bench.clock.advance(.seconds(2))
        _ = try await bench.store.expire()
        let all = ["delivered", "dead", "cancelled", "filtered", "superseded", "expired"]
        try await bench.reopen()
        #expect(try await completed(bench) == all)
        let first = try #require(try await bench.store.completion(of: "t", after: 0))
        #expect(first.request.summary.state == .delivered)
        #expect(first.request.response?.body == Data("body".utf8))
        let waiting = try await bench.store.statistics().completions
        #expect(waiting == [QueueStatistics.WaitingCompletions(tag: "t", count: 6)])
        try await bench.store.removeCompletion(at: first.position)
        try await bench.reopen()
        #expect(try await completed(bench) == Array(all.dropFirst()))
        #expect(try await completed(bench, "other") == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a completion is removed with its request, by age and by number`(kind: StoreKind) async throws {
        let bench = try await kind.bench { $0.retention.doneCount = 3 }
        for number in 0..<5 {
            _ = try await put(bench, "n\(number)")
            _ = try await bench.store.edit(.cancel, ["n\(number)"])
            bench.clock.advance(.seconds(1))
        }
        while try await bench.store.expire() == .zero {}
        #expect(try await completed(bench) == ["n2", "n3", "n4"])
        bench.clock.advance(day)
        while try await bench.store.expire() == .zero {}
        #expect(try await completed(bench) == [])
        #expect(try await bench.store.statistics().completions == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a dead request that is retried waits for its handler only when it has ended again`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        #expect(try await completed(bench) == ["a"])
        _ = try await bench.store.edit(.retry(newKey: false), ["a"])
        #expect(try await completed(bench) == [])
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200))
        #expect(try await completed(bench) == ["a"])
    }
}

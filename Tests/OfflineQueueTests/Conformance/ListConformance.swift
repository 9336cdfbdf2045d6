internal import Foundation
internal import OfflineQueue
internal import Testing

/// Lists, prefixes and details of requests.
@Suite struct ListConformance {
    private func fill(_ bench: StoreBench) async throws {
        for index in 0..<5 { try await bench.put("w\(index)", host: "h\(index % 2).example") }
        for index in 0..<5 {
            try await bench.finish(
                "d\(index)",
                index == 0 ? .dead(reason: "HTTP 404") : .delivered(status: 200)
            )
        }
        try await bench.put("held") { $0.lane = "l" }
        _ = try await bench.store.edit(.hold, ["held"])
    }

    private static let order = ["w0", "w1", "w2", "w3", "w4", "held", "d4", "d3", "d2", "d1", "d0"]

    @Test(arguments: StoreKind.allCases, [1, 2, 3, 5, 6, 10, 11, 12])
    func `the pages together contain the whole list`(kind: StoreKind, limit: Int) async throws {
        let bench = try await kind.bench()
        try await fill(bench)
        var (ids, query) = ([String](), RequestQuery(limit: limit))
        repeat {
            let page = try await bench.store.page(query)
            #expect(page.requests.count == limit || page.next == nil)
            ids += page.requests.map(\.id)
            query.after = page.next
        } while query.after != nil
        #expect(ids == Self.order)
    }

    @Test(arguments: StoreKind.allCases)
    func `paging misses no request that stays in the list`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await fill(bench)
        let first = try await bench.store.page(RequestQuery(limit: 2))
        _ = try await bench.store.edit(.cancel, ["w1"])
        try await bench.put("late")
        var query = RequestQuery(limit: 100)
        query.after = first.next
        let rest = try await bench.store.page(query).requests.map(\.id)
        #expect(rest == ["w2", "w3", "w4", "held", "late", "w1", "d4", "d3", "d2", "d1", "d0"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a dropped dead request is listed by its drop, before requests that finished earlier`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench()
        for id in ["a", "b", "c"] { try await bench.finish(id, .dead(reason: "HTTP 404")) }
        bench.clock.advance(.seconds(60))
        _ = try await bench.store.edit(.cancel, ["a"])
        try await bench.finish("d", .delivered(status: 200))
        bench.clock.advance(.seconds(60))
        let dead = RequestFilter(states: [.dead])
        _ = try await bench.store.edit(.cancel, matching: dead, isDryRun: false)
        let listed = try await bench.store.page(RequestQuery()).requests
        #expect(listed.map(\.id) == ["c", "b", "d", "a"])
        let ends = listed.compactMap(\.finished)
        #expect(ends.count == 4 && ends == ends.sorted(by: >))
    }

    @Test(arguments: StoreKind.allCases)
    func `a list can be filtered by state, host and label`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await fill(bench)
        func ids(_ adjust: (inout RequestQuery) -> Void) async throws -> [String] {
            var query = RequestQuery()
            adjust(&query)
            return try await bench.store.page(query).requests.map(\.id)
        }
        #expect(try await ids { $0.states = [.dead] } == ["d0"])
        #expect(try await ids { $0.states = [.dead, .held] } == ["held", "d0"])
        #expect(try await ids { $0.states = [] }.isEmpty)
        #expect(try await ids { $0.host = "H1.example" } == ["w1", "w3"])
        #expect(try await ids { $0.host = "d2.example" } == ["d2"])
        #expect(try await ids { $0.lane = "l" } == ["held"])
        #expect(try await ids { $0.lane = "" }.count == 10)
        #expect(try await ids { $0.limit = 0 }.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `ids are found by their prefix`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        for id in ["ab", "abc", "b%25", "b_", "~"] { try await bench.put(id) }
        try await bench.finish("abd", .delivered(status: 200))
        let store = bench.store
        #expect(try await store.ids(beginningWith: "ab", limit: 9) == ["ab", "abc", "abd"])
        #expect(try await store.ids(beginningWith: "ab", limit: 2) == ["ab", "abc"])
        #expect(try await store.ids(beginningWith: "b%", limit: 9) == ["b%25"])
        #expect(try await store.ids(beginningWith: "~", limit: 9) == ["~"])
        #expect(try await store.ids(beginningWith: "AB", limit: 9).isEmpty)
        #expect(try await store.ids(beginningWith: "", limit: 9).count == 6)
    }

    @Test(arguments: StoreKind.allCases)
    func `details contain all enqueued values`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        try await bench.put("first")
        try await bench.put("a", method: "PUT", host: "x.example", body: "12345") {
            $0.lane = "l"
            $0.replaceKey = "k"
            $0.isAtMostOnce = true
            $0.idempotencyKey = .value("key")
            $0.dependencies = ["first"]
            $0.timeToLive = .seconds(60)
        }
        let details = try #require(try await bench.store.details(of: "a"))
        #expect(details.summary.method == "PUT" && details.summary.url == "http://x.example/a")
        #expect(details.summary.lane == "l" && !details.summary.isFIFO && details.summary.bodyBytes == 5)
        #expect(details.summary.created == start.date && details.summary.due == nil)
        #expect(details.summary.expires == start.date.addingTimeInterval(60))
        #expect(
            details.idempotencyKey == "key" && details.options.replaceKey == "k"
                && details.options.isAtMostOnce
        )
        #expect(details.dependencies == ["first"] && details.attempts.isEmpty && details.response == nil)
        #expect(try await bench.store.details(of: "nobody") == nil)
    }
}

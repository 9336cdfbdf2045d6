internal import Foundation
internal import OfflineQueue
internal import Testing

/// Webhooks, which are stored in the transaction that ends their request.
@Suite struct WebhookConformance {
    private static let url = "https://hooks.example/done"

    private struct Outcome: Decodable {
        let v: Int
        let id: String
        let tag: String?
        let event: String
        let state: String
        let status: Int?
        let reason: String?
        let attempts: Int
        let finished: String
    }

    @discardableResult
    private func put(
        _ bench: StoreBench,
        _ id: String,
        _ adjust: (inout EnqueueOptions) -> Void = { _ in }
    ) async throws -> Int64 {
        try await bench.put(id) {
            $0.onDone = Webhook(url: Self.url)
            adjust(&$0)
        }
    }

    /// Claims all webhooks that are due.
    private func webhooks(_ bench: StoreBench) async throws -> [ClaimedRequest] {
        let lanes = try await bench.store.reopen(releasing: [])
        guard let lane = lanes.first(where: { $0.key.origin.host == "hooks.example" }) else { return [] }
        return try await bench.take(lane.id, 100)
    }

    private func outcome(_ webhook: ClaimedRequest) throws -> Outcome {
        guard case .inline(let data) = webhook.body else { throw CancellationError() }
        return try JSONDecoder().decode(Outcome.self, from: data)
    }

    @Test(arguments: StoreKind.allCases)
    func `every end of a request stores one webhook with the outcome`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "delivered") { $0.tag = "t" }
        #expect(try await bench.store.details(of: "delivered")?.webhookID == nil)
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 201), status: 201)
        try await put(bench, "dead")
        let dead = try await bench.takeOne(lane)
        try await bench.store.conclude(dead, .dead(reason: "HTTP 404"), status: 404)
        try await put(bench, "failed") { $0.maximumAttempts = 1 }
        let failed = try await bench.takeOne(lane)
        try await bench.store.conclude(failed, .retry(countsAsAttempt: true), detail: "reset")
        try await put(bench, "cancelled")
        _ = try await bench.store.edit(.cancel, ["cancelled"])
        try await put(bench, "filtered") { $0.tag = "f" }
        _ = try await bench.store.edit(.cancel, matching: RequestFilter(tag: "f"), isDryRun: false)
        try await put(bench, "superseded") { $0.replaceKey = "k" }
        try await bench.put("newer") { $0.replaceKey = "k" }
        try await put(bench, "expired") { $0.timeToLive = .seconds(1) }
        bench.clock.advance(.seconds(2))
        _ = try await bench.store.expire()
        let webhooks = try await webhooks(bench)
        let outcomes = try webhooks.map(outcome)
        #expect(
            outcomes.map(\.id)
                == ["delivered", "dead", "failed", "cancelled", "filtered", "superseded", "expired"]
        )
        #expect(
            outcomes.map(\.event)
                == ["delivered", "dead", "dead", "cancelled", "cancelled", "superseded", "expired"]
        )
        #expect(outcomes.map(\.status) == [201, 404, nil, nil, nil, nil, nil])
        #expect(outcomes.map(\.attempts) == [1, 1, 1, 0, 0, 0, 0])
        #expect(outcomes.map(\.tag) == ["t", nil, nil, nil, "f", nil, nil])
        #expect(outcomes[1].reason == "HTTP 404" && outcomes[2].reason == "failed 1 time: reset")
        #expect(outcomes[6].state == "dead" && outcomes.allSatisfy { $0.v == 1 })
        #expect(outcomes[0].finished == "2027-01-15T08:00:00.000Z")
        #expect(webhooks.allSatisfy { $0.method == "POST" && $0.url == Self.url })
        #expect(webhooks.allSatisfy { $0.key?.value == $0.id })
        #expect(Set(webhooks.map(\.id)).count == 7)
        for (webhook, outcome) in zip(webhooks, outcomes) {
            #expect(try await bench.store.details(of: webhook.id)?.webhookOf == outcome.id)
            #expect(try await bench.store.details(of: outcome.id)?.webhookID == webhook.id)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a webhook has no webhook and no tag`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a") { $0.tag = "t" }
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200))
        let webhook = try #require(try await webhooks(bench).first)
        try await bench.store.conclude(webhook, .dead(reason: "HTTP 410"))
        #expect(try await webhooks(bench).isEmpty)
        let details = try #require(try await bench.store.details(of: webhook.id))
        #expect(details.options.onDone == nil && details.summary.tag == nil && details.summary.state == .dead)
    }

    @Test(arguments: StoreKind.allCases)
    func `an outcome under a lost lease stores no webhook`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let sent = try await bench.takeOne(try await put(bench, "a"))
        try await bench.reopen()
        #expect(try await !bench.store.conclude(sent, .delivered(status: 200)))
        #expect(try await webhooks(bench).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a dead request that is retried reports its next end with another key`(kind: StoreKind) async throws
    {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        _ = try await bench.store.edit(.retry(newKey: false), ["a"])
        try await bench.store.conclude(try await bench.takeOne(lane), .delivered(status: 200))
        let webhooks = try await webhooks(bench)
        #expect(try webhooks.map { try outcome($0).event } == ["dead", "delivered"])
        #expect(Set(webhooks.map(\.key?.value)).count == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `the webhook of a dead request is found after the request was dropped`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        let webhook = try #require(try await bench.store.details(of: "a")?.webhookID)
        bench.clock.advance(.seconds(1))
        #expect(try await bench.store.edit(.cancel, ["a"]) == [.done(.cancelled)])
        #expect(try await bench.store.details(of: "a")?.webhookID == webhook)
        // The drop is not reported again.
        #expect(try await webhooks(bench).map(\.id) == [webhook])
    }

    @Test(arguments: StoreKind.allCases)
    func `a retry of several requests that one of them refuses changes none of them`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench {
            $0.limits.requests = 2
            $0.limits.laneShare = 1
        }
        let lane = try await bench.put("plain")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        try await put(bench, "a")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        let requests = try await bench.store.statistics().requests
        await #expect(throws: QueueError.self) {
            _ = try await bench.store.edit(.retry(newKey: false), ["plain", "a"])
        }
        #expect(try await bench.state("plain") == .dead)
        #expect(try await bench.store.statistics().requests == requests)
    }

    @Test(arguments: StoreKind.allCases)
    func `a dead request with a webhook is retried only if the queue has room for another webhook`(
        kind: StoreKind
    ) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 2
            $0.limits.laneShare = 1
        }
        let lane = try await put(bench, "a")
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        try await bench.put("b")
        let error = await #expect(throws: QueueError.self) {
            _ = try await bench.store.edit(.retry(newKey: false), ["a"])
        }
        #expect(error?.code == .queueFull && error?.message.contains("`a`") == true)
        let filter = RequestFilter(states: [.dead])
        _ = try await bench.store.edit(.retry(newKey: false), matching: filter, isDryRun: false)
        #expect(try await bench.state("a") == .dead)
        #expect(try await bench.store.statistics().requests == 2)
        _ = try await bench.store.edit(.cancel, ["b"])
        #expect(try await bench.store.edit(.retry(newKey: false), ["a"]) == [.done(.pending)])
    }

    @Test(arguments: StoreKind.allCases)
    func `an imported dead request does not report its end again`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let lane = try await put(bench, "a") { $0.tag = "t" }
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: "no"))
        let rows = try await bench.store.archive.rows(
            after: ExportCursor(part: .dead, position: 0),
            bytes: 1 << 20
        )
        let archived = try #require(rows.first).content.get().request
        let other = try await kind.bench()
        let restored = RestoredRequest(archived, try archived.validated())
        #expect(try await other.store.archive.restore([restored]) == [.restored])
        let details = try #require(try await other.store.details(of: "a"))
        #expect(details.summary.tag == "t" && details.options.onDone == Webhook(url: Self.url))
        #expect(try await other.store.statistics().completions == [])
        #expect(try await other.store.statistics().requests == 0)
        // A retry makes it an ordinary request, whose end is reported.
        _ = try await other.store.edit(.retry(newKey: false), ["a"])
        _ = try await other.store.edit(.cancel, ["a"])
        #expect(try await webhooks(other).count == 1)
        #expect(try await other.store.completion(of: "t", after: 0) != nil)
    }

    // MARK: Limits

    @Test(arguments: StoreKind.allCases)
    func `a request reserves room for its webhook in a full queue`(kind: StoreKind) async throws {
        let size = try new("a") { $0.onDone = Webhook(url: Self.url) }.size
        let bench = try await kind.bench {
            $0.limits.requests = 2
            $0.limits.bytes = 2 * size
            $0.limits.laneShare = 1
        }
        let lane = try await put(bench, "a")
        try await put(bench, "b")
        let request = try await bench.takeOne(lane)
        try await bench.store.conclude(request, .dead(reason: String(repeating: "\"", count: 5000)))
        let statistics = try await bench.store.statistics()
        #expect(statistics.requests == 2 && statistics.bytes <= 2 * size)
        let error = try await #require(throws: QueueError.self) { try await put(bench, "c") }
        #expect(error.code == .queueFull)
        let webhook = try #require(try await webhooks(bench).first)
        try await bench.store.conclude(webhook, .delivered(status: 200))
        try await put(bench, "c")
    }

    @Test(arguments: StoreKind.allCases)
    func `neither requests with a webhook nor webhooks are dropped to make room`(kind: StoreKind) async throws
    {
        let bench = try await kind.bench {
            $0.limits.requests = 3
            $0.limits.laneShare = 1
        }
        try await put(bench, "cancelled")
        _ = try await bench.store.edit(.cancel, ["cancelled"])
        try await put(bench, "a")
        try await bench.put("plain")
        try await put(bench, "b") { $0.whenFull = .dropOldest }
        #expect(try await bench.state("plain") == .dead)
        let error = try await #require(throws: QueueError.self) {
            try await put(bench, "c") { $0.whenFull = .dropOldest }
        }
        #expect(error.code == .queueFull)
        #expect(try await bench.store.statistics().requests == 3)
        #expect(try await webhooks(bench).count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `the webhook of a replaced request takes its room`(kind: StoreKind) async throws {
        let bench = try await kind.bench {
            $0.limits.requests = 1
            $0.limits.laneShare = 1
        }
        try await put(bench, "a") { $0.replaceKey = "k" }
        let error = try await #require(throws: QueueError.self) {
            try await put(bench, "b") { $0.replaceKey = "k" }
        }
        #expect(error.code == .queueFull)
        #expect(try await bench.store.states() == ["a": .pending])
    }

    @Test(arguments: StoreKind.allCases)
    func `a replaced request frees its place in its lane, which its webhook does not take`(kind: StoreKind)
        async throws
    {
        let bench = try await kind.bench {
            $0.limits.requests = 4
            $0.limits.laneShare = 0.5
        }
        try await put(bench, "other")
        try await put(bench, "a") { $0.replaceKey = "k" }
        try await put(bench, "b") { ($0.replaceKey, $0.whenFull) = ("k", .dropOldest) }
        #expect(try await bench.state("other") == .pending)
        #expect(try await bench.state("b") == .pending)
    }

    @Test(arguments: StoreKind.allCases)
    func `equal requests of two stores report their ends with different keys, which no user can calculate`(
        kind: StoreKind
    ) async throws {
        var keys: Set<String?> = []
        for _ in 0..<2 {
            let bench = try await kind.bench()
            try await put(bench, "a")
            _ = try await bench.store.edit(.cancel, ["a"])
            keys.formUnion(try await webhooks(bench).map(\.key?.value))
        }
        #expect(keys.count == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `the longest outcome fits into the reserved bytes`(kind: StoreKind) async throws {
        let bench = try await kind.bench()
        let id = String(repeating: "\\", count: 255)
        let tag = String(repeating: "\"", count: 255)
        var options = EnqueueOptions(id: id)
        options.tag = tag
        options.onDone = Webhook(url: Self.url)
        let request = QueueRequest(method: "POST", url: "http://example.com/")
        let new = try NewRequest(request, options: options, now: start.date)
        let lane = try #require(try await bench.store.enqueue(new).first).lane.id
        let before = try await bench.store.statistics().bytes
        let reason = String(repeating: "\u{1}\"", count: 255) + "☃☃"
        try await bench.store.conclude(try await bench.takeOne(lane), .dead(reason: reason), status: 404)
        let outcome = try outcome(try #require(try await webhooks(bench).first))
        #expect(outcome.id == id && outcome.tag == tag && outcome.status == 404)
        #expect(outcome.reason?.hasPrefix(" \" \"") == true && outcome.reason!.utf8.count <= 512)
        #expect(try await bench.store.statistics().bytes <= before)
    }
}

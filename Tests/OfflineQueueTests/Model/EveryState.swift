internal import Foundation
internal import OfflineQueue

/// Fills a store with requests in every state, for every reason, and with every option. It uses only calls that later
/// versions of the store must support, too. Two stores that were filled at the same times have the same content.
struct EveryState {
    private let store: SQLiteQueueStore
    private let clock: TestStoreClock

    static func fill(_ store: SQLiteQueueStore, _ clock: TestStoreClock) async throws {
        let filler = EveryState(store: store, clock: clock)
        try await filler.fillHistory()
        try await filler.fillHeld()
        try await filler.fillWaiting()
        try await filler.fillSent()
    }

    private func fillHistory() async throws {
        clock.advance(.seconds(1))
        let response = RecordedResponse(
            status: 201,
            headers: [QueueRequest.Header(name: "Location", value: "/ä")],
            body: Data("made".utf8),
            isTruncated: true
        )
        let delivered = try await sent("delivered", host: "over.example")
        try await store.conclude(
            delivered,
            .retry(countsAsAttempt: true),
            status: 503,
            detail: "HTTP 503",
            attempt: attempt
        )
        let again = try await store.claim(of: try await lane(of: "over.example")).requests[0]
        try await store.conclude(
            again,
            .delivered(status: 201),
            status: 201,
            attempt: attempt,
            response: response
        )
        let dead = try await sent("dead", host: "over.example", body: "of the dead")
        try await store.conclude(
            dead,
            .dead(reason: "HTTP 422"),
            status: 422,
            detail: "HTTP 422",
            attempt: attempt
        )
        try await store.enqueue(
            try new("cancelled", host: "over.example", body: "") { $0.idempotencyKey = .value("k") }
        )
        _ = try await store.edit(.cancel, ["cancelled"])
        for id in ["superseded", "newest"] {
            try await store.enqueue(
                try new(id, method: "PUT", host: "over.example") { $0.replaceKey = "state" }
            )
        }
    }

    /// Adds a held request for each reason, each in its own lane. Earlier versions do not have the reason `key`.
    private func fillHeld() async throws {
        for reason in HoldReason.allCases where reason != .key {
            let request = try await sent("held-\(reason.rawValue)", host: "\(reason.rawValue).example")
            try await store.conclude(
                request,
                .held(reason),
                status: 401,
                detail: "it was so",
                attempt: attempt
            )
        }
    }

    private func fillWaiting() async throws {
        clock.advance(.seconds(1))
        let large = Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0 / 256) })
        let spooled = try NewRequest(
            QueueRequest(method: "PUT", url: "http://waiting.example/spooled"),
            options: EnqueueOptions(id: "spooled"),
            body: .spooled(try await store.spool.store(large)),
            now: start.date
        )
        try await store.enqueue(spooled)
        try await store.enqueue(
            try new("options", host: "waiting.example") { options in
                options.priority = 1
                options.maximumAttempts = 7
                options.isAtMostOnce = true
                options.expectation = Expected(statuses: [200...200, 409...409])
                options.idempotencyKey = .none
                options.timeToLive = .seconds(30 * 86_400)
            },
            try new("key", host: "waiting.example") { options in
                options.idempotencyKey = .value("mine")
                options.idempotencyKey.headerName = "X-Key"
                options.idempotencyKey.isQuoted = true
            },
            try new("scheduled", method: "PUT", host: "waiting.example") {
                $0.notBefore = start.date.addingTimeInterval(7200)
            },
            try new("blocked", method: "PUT", host: "waiting.example") {
                $0.dependencies = ["spooled", "key"]
            }
        )
        for number in 0..<3 {
            try await store.enqueue(
                try new("fifo-\(number)", method: "PUT", host: "waiting.example", isFIFO: true) {
                    $0.lane = "orders"
                }
            )
        }
        try await store.enqueue(try new("paused", method: "PUT", host: "paused.example"))
        _ = try await store.setPaused(true, lanes: LaneSelection(host: "paused.example"))
        let closed = try await sent("closed", method: "PUT", host: "closed.example")
        try await store.conclude(
            closed,
            .retry(countsAsAttempt: false),
            delay: .seconds(60),
            laneClosure: .seconds(600)
        )
    }

    /// Leaves requests in flight, like a process that dies.
    private func fillSent() async throws {
        clock.advance(.seconds(1))
        _ = try await sent("sent-put", method: "PUT", host: "sent.example") { $0.replaceKey = "state" }
        try await store.enqueue(
            try new("successor", method: "PUT", host: "sent.example") { $0.replaceKey = "state" }
        )
        _ = try await sent("sent-once", host: "once.example") {
            $0.isAtMostOnce = true
            $0.idempotencyKey = .none
        }
        _ = try await sent("sent-held", method: "PUT", host: "wish.example")
        _ = try await store.edit(.hold, ["sent-held"])
    }

    private let attempt = AttemptRecord(duration: .milliseconds(12), curlCode: 0)

    private func sent(
        _ id: String,
        method: String = "POST",
        host: String,
        body: String = "hello",
        _ adjust: (inout EnqueueOptions) -> Void = { $0.idempotencyKey = .value("k") }
    ) async throws -> ClaimedRequest {
        let request = try new(id, method: method, host: host, body: body, adjust)
        let lane = try await store.enqueue(request)[0].lane.id
        return try await store.claim(of: lane).requests.first { $0.id == id }!
    }

    private init(store: SQLiteQueueStore, clock: TestStoreClock) {
        (self.store, self.clock) = (store, clock)
    }

    private func lane(of host: String) async throws -> Int64 {
        try await store.reopen(releasing: []).first { $0.key.origin.host == host }!.id
    }
}

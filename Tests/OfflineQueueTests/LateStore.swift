internal import OfflineQueue

/// A store whose word on one request comes late: after the request is on the disk, and maybe sent.
struct LateStore: QueueStore {
    let inner: SQLiteQueueStore
    let id: String
    let wait: @Sendable () async throws -> Void

    func enqueue(_ requests: [NewRequest], now: Timestamp) async throws -> [EnqueuedRequest] {
        let accepted = try await inner.enqueue(requests, now: now)
        if requests.contains(where: { $0.id == id }) { try await wait() }
        return accepted
    }

    func recover(releasing reasons: Set<HoldReason>, now: Timestamp) async throws -> [LaneRecord] {
        try await inner.recover(releasing: reasons, now: now)
    }

    func reopen(releasing reasons: Set<HoldReason>, now: Timestamp) async throws -> [LaneRecord] {
        try await inner.reopen(releasing: reasons, now: now)
    }

    func claim(_ claims: [LaneClaim], now: Timestamp) async throws -> [ClaimedBatch] {
        try await inner.claim(claims, now: now)
    }

    func conclude(_ conclusions: [Conclusion], now: Timestamp) async throws -> [Bool] {
        try await inner.conclude(conclusions, now: now)
    }

    func list(limit: Int) async throws -> [QueuedRequest] { try await inner.list(limit: limit) }

    func counts() async throws -> QueueCounts { try await inner.counts() }

    func close() async { await inner.close() }
}

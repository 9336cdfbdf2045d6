internal import OfflineQueue

/// A store that returns late from enqueuing one request, after the request is on the disk and may have been sent.
struct DelayedStore: WrappedStore {
    let inner: any QueueStore
    let id: String
    let wait: @Sendable () async throws -> Void

    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest] {
        let accepted = try await inner.enqueue(requests)
        if requests.contains(where: { $0.id == id }) { try await wait() }
        return accepted
    }
}

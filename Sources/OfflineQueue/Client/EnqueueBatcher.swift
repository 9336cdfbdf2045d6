internal import NetwatchEventLoop

/// Stores requests of a session in the order in which they are added, as many as possible per transaction.
///
/// Each request's own task could store it as well, but tasks start in any order.
final class EnqueueBatcher: Sendable {
    /// A request to be stored. Its options have an id.
    struct Entry: Sendable {
        let id: String
        let request: QueueRequest
        let options: EnqueueOptions
        /// The maximum number of body bytes of the response that the caller accepts.
        let responseLimit: Int
        /// Returns whether the request must still be stored. If not, it is left out.
        let isWanted: @Sendable () -> Bool
        /// Receives the receipt, or the error for which the request is not stored. `CancellationError` if it was left
        /// out. Called once.
        let finished: @Sendable (Result<Receipt, any Error>) -> Void

        /// Whether the request may share a transaction. If the queue refuses one request of a transaction, the others
        /// are stored again, which is not possible with an upload. A request that waits for room must not delay
        /// requests that fit.
        fileprivate var mayShare: Bool {
            if case .staged = request.body { return false }
            return options.whenFull != .block
        }
    }

    private struct State {
        var waiting: [Entry] = []
        var isStoring = false
    }

    /// The maximum number of requests per transaction.
    private static let batchSize = 64

    private let state = Lock(State())

    /// Adds a request to the line. If no task is storing the line's requests in the queue, starts one.
    func add(_ entry: Entry, to queue: OfflineQueue) {
        let starts = state.withLock { state in
            state.waiting.append(entry)
            defer { state.isStoring = true }
            return !state.isStoring
        }
        if starts { Task { await self.store(in: queue) } }
    }

    private func store(in queue: OfflineQueue) async {
        while let batch = next() {
            let wanted = batch.filter { entry in
                let isWanted = entry.isWanted()
                if !isWanted { entry.finished(.failure(CancellationError())) }
                return isWanted
            }
            for entry in wanted { await queue.expectResponse(to: entry.id, upTo: entry.responseLimit) }
            await store(wanted, in: queue)
        }
    }

    private func next() -> [Entry]? {
        state.withLock { state in
            let shared = state.waiting.prefix { $0.mayShare }.prefix(Self.batchSize)
            let batch = Array(shared.isEmpty ? state.waiting.prefix(1) : shared)
            state.waiting.removeFirst(batch.count)
            state.isStoring = !batch.isEmpty
            return batch.isEmpty ? nil : batch
        }
    }

    private func store(_ batch: [Entry], in queue: OfflineQueue) async {
        do {
            let receipts = try await queue.enqueue(batch.map { ($0.request, $0.options) })
            for (entry, receipt) in zip(batch, receipts) { entry.finished(.success(receipt)) }
        } catch  where batch.count > 1 && (error as? QueueError)?.endsStore != true {
            // A transaction stores all of its requests or none, so one refused request must not affect the others.
            for entry in batch { await store([entry], in: queue) }
        } catch {
            for entry in batch { entry.finished(.failure(error)) }
        }
    }
}

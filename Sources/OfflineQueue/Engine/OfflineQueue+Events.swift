extension OfflineQueue {
    /// The changes that are committed after this returns, in the order of their commits. Any number of consumers can
    /// read them.
    ///
    /// ```swift
    /// for await event in try await queue.events where event.kind == .dead {
    ///     print(event.requestID ?? "", event.reason ?? "")
    /// }
    /// ```
    ///
    /// The store reports every change of a row: by an attempt, an edit, an expiry, an import, a dependency or a
    /// replacement. Events are delivered after their commit. A consumer that reads the states of the requests after it
    /// has obtained this sequence misses no change. Nothing is recorded while there is no consumer.
    ///
    /// An edit of a request in flight takes effect, and is reported, at the end of the attempt.
    ///
    /// - Throws: ``QueueError`` if the queue has stopped or its store has failed.
    public nonisolated var events: QueueEvents {
        get async throws { try await store.events() }
    }
}

internal import NetwatchEventLoop

/// Notifies of requests with a tag that have ended. Each tag has separate waiters, so that the end of a request only
/// wakes the handler of its tag.
package final class CompletionChanges: Sendable {
    private let tags = Lock<[String: ChangeWaiters]>([:])

    /// Returns the waiters of a tag. From now on, they are notified.
    func waiters(of tag: String) -> ChangeWaiters {
        tags.withLock { tags in
            if let waiters = tags[tag] { return waiters }
            let waiters = ChangeWaiters()
            tags[tag] = waiters
            return waiters
        }
    }

    /// Forgets the waiters of a tag, of which none may be waiting.
    func removeWaiters(of tag: String) {
        tags.withLock { $0[tag] = nil }
    }

    /// Wakes the waiters of these tags.
    func post(_ completed: Set<String>) {
        guard !completed.isEmpty else { return }
        let waiters = tags.withLock { tags in completed.compactMap { tags[$0] } }
        for tag in waiters { tag.changed() }
    }
}

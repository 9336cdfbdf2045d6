internal import Synchronization

/// An initialization that runs until it has succeeded once. May be used by any thread.
package final class RetriedOnce: Sendable {
    private let lock = Lock(())
    private let isDone = Atomic(false)

    package init() {}

    /// Whether the initialization has succeeded.
    package var hasSucceeded: Bool { isDone.load(ordering: .acquiring) }

    /// Runs the initialization if it has not succeeded yet. After a failure, the next call tries again. Concurrent
    /// callers wait until the running call has ended.
    package func run(_ initialize: () throws(SystemError) -> Void) throws(SystemError) {
        guard !hasSucceeded else { return }
        let result = lock.withLock { _ -> Result<Void, SystemError> in
            guard !isDone.load(ordering: .relaxed) else { return .success(()) }
            return Result { () throws(SystemError) in
                try initialize()
                isDone.store(true, ordering: .releasing)
            }
        }
        try result.get()
    }
}

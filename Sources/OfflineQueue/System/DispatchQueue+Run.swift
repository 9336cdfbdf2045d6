internal import Dispatch

extension DispatchQueue {
    /// Runs work that may block on the disk on this queue, because nothing may block a thread of the cooperative pool.
    /// The work is enqueued before the caller's actor can run anything else, so that an actor's calls keep their order.
    func run<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withCheckedContinuation { continuation in
            async { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }
}

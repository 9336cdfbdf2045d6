package import Dispatch

extension DispatchQueue {
    /// Runs blocking work on this queue, and returns its result. Code that waits for the disk must not block a thread
    /// of the cooperative pool.
    ///
    /// The work is submitted before the caller's actor runs anything else. Calls from the same actor therefore run in
    /// their order on a serial queue.
    package func run<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withCheckedContinuation { continuation in
            async { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }
}

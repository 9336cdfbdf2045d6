internal import Dispatch

extension DispatchQueue {
    /// Runs on the queue what may wait for the disk, which nothing on the cooperative pool may. It is on the queue
    /// before the caller's actor does anything else, so that an actor's calls keep their order.
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

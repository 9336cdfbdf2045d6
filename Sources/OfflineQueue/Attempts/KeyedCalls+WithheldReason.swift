/// Calls that an attempt needs.
extension KeyedCalls {
    /// The delay before the next attempt of a request whose call was refused.
    private static var delay: Duration { .seconds(30) }

    /// Makes a call like ``run(for:_:)``. If it is refused or does not return in time, the attempt is withheld.
    ///
    /// - Parameters:
    ///   - callee: What is called, for messages, such as `the provider of the credential …`.
    ///   - keys: What the keys are, for messages, in the plural.
    /// - Throws: ``WithheldReason``, `CancellationError`, or the error of `body`.
    func run<Value: Sendable>(
        for key: Key,
        of callee: String,
        keys: String,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        do {
            return try await run(for: key, body)
        } catch is TimedCall.Timeout {
            throw overdue(callee)
        } catch let refusal as Refusal {
            switch refusal {
            case .overdue: throw overdue(callee).delayed(by: Self.delay)
            case .tooManyOverdueKeys:
                let others = "calls for \(Self.maximumOverdueKeys) other \(keys) have not returned"
                throw WithheldReason(.retry, "\(callee) was not called: \(others)").delayed(by: Self.delay)
            }
        }
    }

    private func overdue(_ callee: String) -> WithheldReason {
        WithheldReason(.retry, "\(callee) did not return within \(timeout.words)")
    }
}

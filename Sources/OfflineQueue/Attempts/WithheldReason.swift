/// The reason why an attempt was withheld: its credential could not be added, or the session's adapter did not complete
/// the request. Nothing was sent.
package struct WithheldReason: Error, Hashable, Sendable {
    /// What happens to the request.
    package enum Remedy: Hashable, Sendable {
        /// The request is held: it can be sent only after the credential, or the name of the credential in the request,
        /// has changed.
        case change
        /// The request is tried again later, because the cause may pass: for example, a token service is unreachable,
        /// or the adapter has failed.
        case retry
    }

    package let remedy: Remedy
    /// The complete reason.
    private var text: String
    /// Whether the request names a credential that does not exist.
    package let isUnknown: Bool
    /// The minimum time until another attempt can succeed.
    package private(set) var delay: Duration = .zero

    /// The maximum number of characters of ``reason``.
    package static let maximumReasonLength = 512

    package init(_ remedy: Remedy, _ reason: String, isUnknown: Bool = false) {
        self.remedy = remedy
        self.isUnknown = isUnknown
        text = reason
    }

    /// The reason as text for users. It names the credential or the session's adapter.
    ///
    /// The error of a provider or an adapter may be of any length, and the reason is stored at each attempt. Therefore only
    /// the first characters are returned.
    package var reason: String { String(text.prefix(Self.maximumReasonLength)) }

    /// Returns a copy with a changed text, for example without secrets. `change` receives the complete reason: a secret
    /// at the end of ``reason`` may be truncated, and a search would then not find it.
    func mapText(_ change: (String) -> String) -> WithheldReason {
        var reason = self
        reason.text = change(text)
        return reason
    }

    /// Returns a copy of the reason with another ``delay``.
    func delayed(by delay: Duration) -> WithheldReason {
        var reason = self
        reason.delay = delay
        return reason
    }
}

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

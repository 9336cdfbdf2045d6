/// The reason why an attempt could not be completed with its credential, or by the adapter of the queue's session.
/// Nothing was sent.
package struct CredentialFault: Error, Hashable, Sendable {
    /// What happens to the request.
    package enum Remedy: Hashable, Sendable {
        /// Only a change of the credential or of the request's reference helps, so the request is held.
        case change
        /// Another attempt may succeed, for example because a token service is unreachable now.
        case retry
    }

    package let remedy: Remedy
    /// The reason for a person, which names the credential.
    package let reason: String
    /// Whether there is no credential of this name.
    package let isUnknown: Bool
    /// The minimum time until another attempt can succeed.
    package private(set) var delay: Duration = .zero

    /// The maximum number of characters of ``reason``.
    package static let maximumReasonLength = 512

    package init(_ remedy: Remedy, _ reason: String, isUnknown: Bool = false) {
        self.remedy = remedy
        self.isUnknown = isUnknown
        // The error of a provider may be of any length, and the reason is stored at each attempt.
        self.reason = String(reason.prefix(Self.maximumReasonLength))
    }

    /// Returns a copy of the fault with another ``delay``.
    func delayed(by delay: Duration) -> CredentialFault {
        var fault = self
        fault.delay = delay
        return fault
    }
}

/// The owners that a failed request is offered to: the request's own owner, then its session's, each once per failure.
///
/// The request's own owner comes first, because the caller who set that owner knows more about the request. The caller
/// may also set that owner while the session's owner is deciding. In that case the new owner is offered the failure
/// after the session's owner has declined.
struct FailureOwners: Sendable {
    private var own: (any FailedRequestOwner)?
    private var isOwnAsked = false
    private var isSessionAsked = false

    /// Sets the request's own owner and replaces an earlier one.
    mutating func setOwn(_ owner: any FailedRequestOwner) {
        own = owner
        isOwnAsked = false
    }

    /// Starts another attempt: its failure is offered to all owners again.
    mutating func begin() {
        (isOwnAsked, isSessionAsked) = (false, false)
    }

    /// Returns the next owner to offer the failure to, and records the offer; `nil` if every owner has received an
    /// offer.
    ///
    /// - Parameter session: The session's current owner.
    mutating func next(_ session: (any FailedRequestOwner)?) -> (any FailedRequestOwner)? {
        if let own, !isOwnAsked {
            isOwnAsked = true
            return own
        }
        guard !isSessionAsked else { return nil }
        isSessionAsked = true
        return session
    }
}

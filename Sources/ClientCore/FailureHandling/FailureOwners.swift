/// The owners that a failed request is offered to: the request's own owner, then its session's, each once per failure.
///
/// The request's own owner comes first, because the caller who set that owner knows more about the request. The
/// caller may also set that owner while the session's owner holds the request. In that case the new owner receives the
/// offer after the session's owner has declined.
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

    /// Returns the owner to offer the failure to, and marks it as asked; `nil` if all owners have been asked.
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

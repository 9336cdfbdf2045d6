/// The owners that a failed request is offered to: its own owner, then its session's, each once per failure.
///
/// The request's own owner comes first, because the caller who set it knows more about the request. An owner that is
/// set while the session's owner holds the request receives the offer when the session's owner releases it.
struct FailureOwners: Sendable {
    private var own: (any FailedRequestOwner)?
    private var isOwnAsked = false
    private var isSessionAsked = false

    /// Sets the request's own owner and replaces an earlier one.
    mutating func setOwn(_ owner: any FailedRequestOwner) {
        own = owner
        isOwnAsked = false
    }

    /// Starts another attempt, whose failure has not been offered to any owner.
    mutating func begin() {
        (isOwnAsked, isSessionAsked) = (false, false)
    }

    /// Returns the next owner and marks it as called; `nil` if all owners have been called.
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

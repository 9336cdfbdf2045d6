/// Who may finish a request that has failed: its own owner, then its session's, each of them asked once about one
/// failure.
///
/// The own one is nearer to whoever made the request, and knows more of it. One that is named while the session's
/// has the request in hand is asked when that lets go of it.
struct FailureOwners: Sendable {
    private var own: (any FailedRequestOwner)?
    private var isOwnAsked = false
    private var isSessionAsked = false

    /// Names the request's own owner, in place of one that was named before.
    mutating func name(_ owner: any FailedRequestOwner) {
        own = owner
        isOwnAsked = false
    }

    /// Another attempt begins, about whose failure nobody was asked.
    mutating func begin() {
        (isOwnAsked, isSessionAsked) = (false, false)
    }

    /// Returns who is to be asked now, and takes it for asked; `nil` when everybody was.
    ///
    /// - Parameter session: The session's owner, as it is at this moment.
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

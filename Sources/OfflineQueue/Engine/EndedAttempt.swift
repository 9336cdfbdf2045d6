/// An attempt that has ended, and what is kept of it.
struct EndedAttempt: Sendable {
    /// The outcome. Its messages contain no secrets. A response is as the server sent it.
    var outcome: AttemptOutcome
    /// The response without secrets, for the store and for the callers of ``OfflineQueue/send(_:options:)``; `nil` if
    /// none was received.
    let stored: RecordedResponse?
    let redactor: Redactor

    /// - Parameter redactor: Removes the secrets of the attempt. Default: it has none.
    init(_ outcome: AttemptOutcome, _ redactor: Redactor = .none) {
        self.outcome = outcome.redacted(by: redactor)
        stored = outcome.storedResponse(redactor)
        self.redactor = redactor
    }
}

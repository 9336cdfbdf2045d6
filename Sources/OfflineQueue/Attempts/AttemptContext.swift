/// The properties of a request and its attempt that the table needs besides the outcome.
package struct AttemptContext: Hashable, Sendable {
    package let origin: Origin
    package let mayBeSentTwice: Bool
    package let hasKey: Bool
    /// Whether there was no path to the host when the attempt began, or there is none now.
    package var gateIsDown: Bool
    /// Whether the path was lost and found, or replaced by another one, during the attempt.
    package var pathHasChanged = false
    /// Whether a failed connection is retried fast, because the path was found recently.
    package var isReconnecting = false
    /// The request's `Accept` header; `nil` if there is none.
    package let accept: String?
    package var expectation: Expectation
    /// The status of the previous attempt.
    package let lastStatus: Int?
    /// Whether the server of an `https` origin must prove its identity. A session may disable that.
    package var validatesServer = true
    /// The time since the first 409 in a row; `nil` if the last response was not a 409.
    package var conflictAge: Duration?

    package init(
        origin: Origin,
        mayBeSentTwice: Bool,
        hasKey: Bool,
        gateIsDown: Bool,
        accept: String?,
        expectation: Expectation = .success,
        lastStatus: Int? = nil
    ) {
        self.origin = origin
        self.mayBeSentTwice = mayBeSentTwice
        self.hasKey = hasKey
        self.gateIsDown = gateIsDown
        self.accept = accept
        self.expectation = expectation
        self.lastStatus = lastStatus
    }
}

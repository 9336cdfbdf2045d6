/// What ``FailureTable`` must know about a request and its attempt, in addition to the outcome.
package struct AttemptContext: Hashable, Sendable {
    package let origin: Origin
    /// Whether the server may receive the request twice without harm.
    package let mayBeSentTwice: Bool
    /// Whether the request has an idempotency key.
    package let hasKey: Bool
    /// Whether there was no path to the host when the attempt began, or there is none now that it has failed.
    package var gateIsDown: Bool
    /// Whether the path to the host changed during the attempt: it was lost and found again, or another path replaced
    /// it.
    package var pathHasChanged = false
    /// Whether the attempt was bound to an interface and a source address; see ``Attempt/binding``.
    package var isBound = false
    /// Whether a failure to connect is retried fast and not counted, because the path to the host was found a short
    /// time ago.
    package var isReconnecting = false
    /// The request's `Accept` header; `nil` if there is none.
    package let accept: String?
    /// The responses that count as a delivery.
    package var expectation: Expectation
    /// The caller's rules for statuses, those that take precedence first.
    package var statusRules: [StatusRules] = []
    /// The HTTP status of the previous attempt; `nil` if it received none.
    package let lastStatus: Int?
    /// Whether the session validates the certificate of an `https` server. If it does not, a response may come from any
    /// device on the path.
    package var validatesServer = true
    /// The time since the first of consecutive 409 responses; `nil` if the previous response was not a 409.
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

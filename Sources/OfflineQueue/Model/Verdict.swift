/// The effect of an attempt on its request.
package enum Verdict: Hashable, Sendable {
    case delivered(status: Int)
    /// The request is retried. `countsAsAttempt` is `false`, for example, if the network was down.
    case retry(countsAsAttempt: Bool)
    case held(HoldReason)
    case dead(DeathCause, reason: String)

    var isDelivered: Bool {
        if case .delivered = self { true } else { false }
    }
}

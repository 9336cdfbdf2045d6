/// The effect of an attempt on its request.
package enum Verdict: Hashable, Sendable {
    case delivered(status: Int)
    /// The request is retried. An attempt without a network does not count.
    case retry(countsAsAttempt: Bool)
    case held(HoldReason)
    case dead(DeathCause, reason: String)
}

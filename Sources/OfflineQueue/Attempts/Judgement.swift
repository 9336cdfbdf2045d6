/// The judgement of one attempt.
package struct Judgement: Hashable, Sendable {
    package let verdict: Verdict
    package let lane: LaneEffect
    package let status: Int?
    /// The error in human-readable form; `nil` if there was none.
    package let detail: String?
    /// The timeout that ended the attempt while the server may still execute it. The next attempt waits for the same
    /// time.
    package var overrun: Duration?
}

/// The effect of an attempt on its lane.
package enum LaneEffect: Hashable, Sendable {
    /// The lane works: the server responded normally, even if it refused the request.
    case healthy
    /// The attempt gives no information about the lane.
    case none
    /// The queue ended the attempt because the path changed; the next attempt may start immediately.
    case renewed
    /// The next attempt may start immediately.
    case again
    /// One request failed. Several failures in a row close the lane.
    case failure
    /// The lane closes and backs off.
    case close
    /// There was no path, or it was found only recently. The lane retries after 50, 100, 200, … ms once there is a
    /// path.
    case reconnect
    /// This machine is short of a resource. The lane retries at a separate pace, which no other failure affects.
    case shortage
    /// The server specifies the time to wait (`Retry-After`).
    case closeFor(Duration)
    /// The server is not trusted: the lane waits at least 5 minutes.
    case distrust
    /// The lane waits for a flush or a restart.
    case hold
}

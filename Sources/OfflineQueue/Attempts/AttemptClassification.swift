/// What the outcome of an attempt means for its request (``verdict``) and its lane (``lane``).
package struct AttemptClassification: Hashable, Sendable {
    package private(set) var verdict: Verdict
    package private(set) var lane: LaneEffect
    /// The HTTP status; `nil` if none arrived.
    package let status: Int?
    /// A human-readable description of the error; `nil` after a success.
    package private(set) var detail: String?
    /// The timeout that ended the attempt before the server responded; `nil` if none did. The server may still be
    /// executing the request, so the next attempt waits for the same time.
    package var overrun: Duration?
    /// The minimum time until the next attempt, because of the request's credential.
    package var postponement: Duration = .zero
    /// Whether a captive portal may have responded instead of the server.
    package var suspectsPortal = false
    /// Whether the caller's rules for statuses end the request (``StatusRules/dead``). Its refusal is then not confirmed.
    package private(set) var isChosen = false
}

extension AttemptClassification {
    /// Returns the classification of a response after which the caller's rules retry the request. A response that does not
    /// end the request in any case keeps its meaning.
    func retried(by verdict: Verdict, _ detail: String) -> AttemptClassification {
        switch self.verdict {
        case .dead, .held(.auth): replaced(verdict, .failure, detail)
        case .delivered, .retry, .held: self
        }
    }

    /// Returns the classification of a response after which the caller's rules give the request up. The effect on the lane
    /// remains, because it depends on the server.
    func ended(reason: String) -> AttemptClassification {
        var ended = self
        if case .dead = verdict {} else { ended.verdict = .dead(.refused, reason: reason) }
        if lane == .none || lane == .again { ended.lane = .healthy }
        ended.isChosen = true
        return ended
    }

    /// Returns the classification with another effect on the request, its lane and the message.
    func replaced(_ verdict: Verdict, _ lane: LaneEffect, _ detail: String?) -> AttemptClassification {
        var replaced = self
        (replaced.verdict, replaced.lane, replaced.detail) = (verdict, lane, detail)
        return replaced
    }
}

/// The effect of an attempt on its lane.
package enum LaneEffect: Hashable, Sendable {
    /// The server works: it responded, even if it refused the request. The lane's failure count is reset.
    case healthy
    /// The lane is unaffected, because the outcome concerns only this request or this machine.
    case none
    /// The queue ended the attempt, for example because the path changed. The request may be retried as soon as the
    /// lane is open.
    case renewed
    /// The request is due again immediately, without a backoff.
    case again
    /// The request failed, and backs off alone. Five failures of a lane in a row close the lane.
    case failure
    /// The lane closes immediately, for a time that grows with each closure.
    case close
    /// Something other than the HTTP server responded: a captive portal, or a peer that does not speak HTTP. The lane
    /// closes as after ``close``, but the response does not indicate overload.
    case foreign
    /// There was no path, or it was found only recently. The lane retries fast: after 50, 100, 200, … ms.
    case reconnect
    /// This machine is short of a resource. The lane retries after 0.5 to 30 s, independently of its other failures.
    case shortage
    /// The lane closes for the time that the server specified with `Retry-After`.
    case closeFor(Duration)
    /// The server refused a request, and another attempt must confirm that. The lane closes for a few seconds, and then
    /// sends one request.
    case unconfirmed
    /// The server's certificate is not trusted. The lane closes for 5 to 15 minutes.
    case distrust
    /// No request of the lane can be sent. The lane waits for a flush or a restart of the queue.
    case hold
}

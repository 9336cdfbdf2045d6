// Confirms refusals before the requests of a lane are given up because of them.

extension Scheduler {
    /// An attempt whose response may be a refusal.
    package struct Response: Sendable {
        let lane: Int64
        /// The lane's epoch when the request was claimed (``Claim/epoch``).
        let epoch: Int
        /// When the attempt began.
        let began: Moment
        /// The status of the previous response to the request; `nil` if there was none.
        let previousStatus: Int?
        /// Whether the request may be sent again, and has attempts left.
        let mayBeRepeated: Bool

        package init(lane: Int64, epoch: Int, began: Moment, previousStatus: Int?, mayBeRepeated: Bool) {
            (self.lane, self.epoch, self.began) = (lane, epoch, began)
            (self.previousStatus, self.mayBeRepeated) = (previousStatus, mayBeRepeated)
        }
    }

    /// Returns the classification of an attempt. If the server's refusal must be confirmed, the result is a retry instead
    /// of the end of the request. Must be called before ``conclude(lane:epoch:effect:failures:course:now:)``, which needs
    /// the effect of the result.
    ///
    /// A request that must not be sent again ends with its first refusal. The lane waits for the confirmation in any case,
    /// so that its other requests do not end for the same reason.
    package mutating func confirmed(
        _ classification: AttemptClassification,
        of response: Response,
        now: Moment
    ) -> AttemptClassification {
        guard settings.confirmsRefusals, let lane = lanes[response.lane] else { return classification }
        switch classification.verdict {
        // A delivery over an earlier path does not prove that the current one leads to the server.
        case .delivered where response.epoch >= lane.resetEpoch:
            lanes[response.lane]!.refusals.delivered()
            return classification
        case .dead(.refused, _), .dead(.redirected, _):
            guard let status = classification.status, !classification.isChosen,
                !isFinal(status, response, lane, now: now)
            else { return classification }
            return classification.unconfirmed(response.mayBeRepeated)
        case .delivered, .dead, .held, .retry: return classification
        }
    }

    private mutating func isFinal(_ status: Int, _ response: Response, _ lane: SchedulerLane, now: Moment)
        -> Bool
    {
        var refusals = lane.refusals
        if let failure = slots.lastFailure(of: lane.origin) { refusals.forgetConfirmations(before: failure) }
        defer { lanes[lane.id]!.refusals = refusals }
        return refusals.refused(
            with: status,
            after: response.previousStatus,
            began: response.began,
            delay: confirmationDelay(),
            now: now
        )
    }

    /// Returns a random delay before the attempt that confirms a refusal: twice to three times the base of the backoff.
    /// With the default base, it is longer than the three seconds for which a load balancer may respond without knowing
    /// its servers.
    mutating func confirmationDelay() -> Duration {
        let shortest = min(settings.backoff.base * 2, settings.backoff.cap)
        return random.uniform(shortest...longestConfirmationDelay)
    }

    /// The longest delay before the attempt that confirms a refusal. An attempt after it can confirm the refusal in any
    /// case.
    var longestConfirmationDelay: Duration { min(settings.backoff.base * 3, settings.backoff.cap) }
}

extension AttemptClassification {
    /// Returns the classification of a refusal that is not confirmed.
    ///
    /// - Parameter mayBeRepeated: Whether the request is retried. Otherwise it ends.
    fileprivate func unconfirmed(_ mayBeRepeated: Bool) -> AttemptClassification {
        guard mayBeRepeated else { return replaced(verdict, .unconfirmed, detail) }
        let words = (detail ?? "") + "; another attempt must confirm it before the request is given up"
        return replaced(.retry(countsAsAttempt: true), .unconfirmed, words)
    }
}

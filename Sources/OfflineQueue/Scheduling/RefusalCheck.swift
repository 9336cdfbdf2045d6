/// Whether a server's refusal of a request is final, or must be confirmed by another attempt first.
///
/// After an outage or during a deployment, a load balancer may refuse requests for some seconds, for example with 404. The
/// first refusal with a status therefore only makes the status suspected. A refusal in an attempt that begins after a delay
/// confirms it: of the same request, or of any other one if the lane has delivered none since. For some minutes, all
/// refusals of the lane with a confirmed status are final. Otherwise each invalid request would stop a FIFO lane for the
/// delay.
///
/// The lane is closed for the delay. If it has delivered a request since, it is not closed again because of the status:
/// then the server works, and refuses some requests.
struct RefusalCheck: Hashable, Sendable {
    /// How long a status stays confirmed or suspected, and the time after which failures no longer prevent a confirmation:
    /// 5 min. The server may have been deployed again since.
    private static let memory: Duration = .seconds(300)
    /// The maximum number of suspected statuses. A server could use a new one for each response.
    private static let mostSuspicions = 16

    /// A status that is not confirmed.
    private struct Suspicion: Hashable {
        /// When the status was refused first.
        let first: Moment
        /// When the status was refused last.
        var last: Moment
        /// The end of the delay before an attempt can confirm the status; `nil` after a failure, until the next refusal.
        var confirmableFrom: Moment?
        /// Whether the lane has delivered a request since ``first``, or the status was confirmed. Then only requests that
        /// were tried before confirm it.
        var hasDelivered = false

        /// Whether failures no longer prevent the confirmation.
        func isLate(_ now: Moment) -> Bool { now - first >= memory }
    }

    /// When the check began: with the lane's first request, its last failure, or the last outage. An attempt that began
    /// before says nothing about the server as it is now.
    private var since: Moment
    /// The time until which the lane is closed because of a refusal; `nil` if it was not closed.
    private(set) var closedUntil: Moment?
    private var suspicions: [Int: Suspicion] = [:]
    /// When each status was confirmed.
    private var confirmed: [Int: Moment] = [:]

    init(since: Moment) {
        self.since = since
    }

    /// Records a delivery.
    mutating func delivered() {
        for status in suspicions.keys { suspicions[status]!.hasDelivered = true }
    }

    /// Records a failure of the lane, after which refusals must be confirmed again.
    mutating func failed(now: Moment) {
        (since, closedUntil, confirmed) = (now, nil, [:])
        for (status, suspicion) in suspicions where !suspicion.isLate(now) {
            suspicions[status]!.confirmableFrom = nil
        }
    }

    /// Ends the confirmations from before a failure of another lane, which concerns the same server. It does not delay
    /// other confirmations: otherwise a lane that fails again and again would delay those of this lane for ever.
    mutating func forgetConfirmations(before failure: Moment) {
        confirmed = confirmed.filter { $0.value > failure }
    }

    /// Records a refusal and returns whether it is final.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - previous: The status of the previous response to the same request; `nil` if there was none.
    ///   - began: When the attempt began.
    ///   - delay: The delay before another attempt can confirm the refusal.
    mutating func refused(
        with status: Int,
        after previous: Int?,
        began: Moment,
        delay: Duration,
        now: Moment
    ) -> Bool {
        if let moment = confirmed[status], now - moment < Self.memory { return true }
        let known = suspicions[status].flatMap { suspicion in
            // The suspicion of a request that was tried before lasts as long as the request is tried.
            previous == nil && now - suspicion.last >= Self.memory ? nil : suspicion
        }
        if isFinal(after: previous, known, began: began, now: now) {
            confirm(status, now: now)
            return true
        }
        // An attempt that began before the last failure says nothing about the server as it is now.
        if began >= since {
            suspect(status, known ?? Suspicion(first: now, last: now), delay: delay, now: now)
        }
        return false
    }

    /// - Parameter known: What is known about the status of the refusal.
    private func isFinal(after previous: Int?, _ known: Suspicion?, began: Moment, now: Moment) -> Bool {
        func confirms(_ suspicion: Suspicion?) -> Bool {
            guard let suspicion, let start = suspicion.confirmableFrom else { return false }
            return began >= start && (began >= since || suspicion.isLate(now))
        }
        let own = previous.flatMap { suspicions[$0] }
        if confirms(own) { return true }
        guard let known, confirms(known) else { return false }
        // A request whose responses alternate between a refusal and something else ends when the suspicion is late.
        return !known.hasDelivered || own != nil || (previous != nil && known.isLate(now))
    }

    /// The status stays suspected: after a failure, its confirmation ends.
    private mutating func confirm(_ status: Int, now: Moment) {
        confirmed = confirmed.filter { now - $0.value < Self.memory }
        confirmed[status] = now
        guard suspicions[status] != nil else { return }
        (suspicions[status]!.last, suspicions[status]!.hasDelivered) = (now, true)
    }

    private mutating func suspect(_ status: Int, _ known: Suspicion, delay: Duration, now: Moment) {
        let start = known.confirmableFrom ?? now + delay
        var suspicion = known
        (suspicion.last, suspicion.confirmableFrom) = (now, start)
        suspicions[status] = suspicion
        if !suspicion.hasDelivered { closedUntil = max(closedUntil ?? start, start) }
        guard suspicions.count > Self.mostSuspicions else { return }
        let oldest = suspicions.min { ($0.value.last, $0.key) < ($1.value.last, $1.key) }!
        suspicions[oldest.key] = nil
    }
}

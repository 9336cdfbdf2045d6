/// Whether a server's refusal of a request is final, or must be confirmed by another attempt first.
///
/// After an outage or a deployment, a load balancer may refuse requests for some seconds, for example with 404. A refusal
/// is therefore final only if the response before it was a delivery, or if its status was confirmed. Otherwise the first
/// refusal with a status makes the status suspected. The refusal of an attempt that begins after a delay confirms the
/// status, until the lane's next failure. Deliveries that follow each other within a short time do not end it: they show
/// that the server works, and refuses some requests.
struct RefusalCheck: Hashable, Sendable {
    /// The time after which failures of the lane no longer prevent a confirmation: 5 min.
    private static let longestConfirmation: Duration = .seconds(300)

    /// When the check began: with the lane's first request, its last delivery, its last failure, or the last outage.
    private(set) var since: Moment
    /// The end of the delay before an attempt that can confirm a refusal.
    private(set) var confirmableFrom: Moment = .zero
    /// The end of the time for which the last delivery makes the next refusal final; `nil` without a delivery, and after
    /// a refusal.
    private var provenUntil: Moment?
    private var suspected: Set<Int> = []
    private var confirmed: Set<Int> = []
    /// The statuses that were final because of the delivery before them. The next delivery confirms them.
    private var proven: Set<Int> = []
    /// When each status was refused first since the last delivery or outage.
    private var firstRefused: [Int: Moment] = [:]
    /// From when an attempt confirms a status although the lane fails again and again.
    private var lateFrom: [Int: Moment] = [:]

    init(since: Moment) {
        self.since = since
    }

    /// Whether another attempt may confirm a refusal.
    var isPending: Bool { !suspected.isSubset(of: confirmed) }

    /// Records a delivery, after which the next refusal within `duration` is final.
    mutating func delivered(provenFor duration: Duration, now: Moment) {
        let known = now - since <= duration ? confirmed.union(proven) : []
        self = RefusalCheck(since: now)
        confirmed = known
        provenUntil = now + duration
    }

    /// Records a failure, after which refusals must be confirmed again.
    mutating func failed(now: Moment) {
        let (first, late) = (firstRefused, lateFrom)
        self = RefusalCheck(since: now)
        (firstRefused, lateFrom) = (first, late)
    }

    /// Makes the next refusal not final because of an earlier delivery. A failure of another lane concerns the same server,
    /// but does not delay the confirmations of this lane: otherwise a lane that fails again and again would delay them for
    /// ever.
    mutating func forgetDelivery() {
        if provenUntil != nil { (provenUntil, confirmed) = (nil, []) }
    }

    /// Records a refusal and returns whether it is final.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - began: When the attempt began. An attempt that began before ``since`` says nothing about the server as it is
    ///     now, and one that began before ``confirmableFrom`` does not confirm a refusal.
    ///   - delay: The delay before another attempt can confirm the refusal.
    mutating func refused(with status: Int, began: Moment, delay: Duration, now: Moment) -> Bool {
        if let end = provenUntil {
            provenUntil = nil
            if now < end {
                proven.insert(status)
                return true
            }
            confirmed = []
        }
        let first = firstRefused[status, default: now]
        firstRefused[status] = first
        guard now - first < Self.longestConfirmation else {
            return isLateFinal(status, began: began, delay: delay, now: now)
        }
        guard began >= since, !confirmed.contains(status) else { return confirmed.contains(status) }
        guard suspected.insert(status).inserted else {
            guard began >= confirmableFrom else { return false }
            confirmed.insert(status)
            return true
        }
        confirmableFrom = now + delay
        return false
    }

    /// Returns whether a refusal is final although failures have prevented its confirmation for long: if another attempt
    /// follows, failures between the two no longer matter.
    private mutating func isLateFinal(_ status: Int, began: Moment, delay: Duration, now: Moment) -> Bool {
        if let from = lateFrom[status], now - from < Self.longestConfirmation { return began >= from }
        confirmableFrom = now + delay
        lateFrom[status] = confirmableFrom
        return false
    }
}

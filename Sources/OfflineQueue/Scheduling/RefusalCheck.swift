/// Whether a server's refusal of a request is final, or must be confirmed by another attempt first.
///
/// After an outage or during a deployment, a load balancer may refuse requests for some seconds, for example with 404. The
/// first refusal with a status therefore only makes the status suspected. A refusal in an attempt that begins after a delay
/// confirms it: of the same request, or of any other one if the lane has delivered none in the meantime. For some minutes,
/// all refusals of the lane with a confirmed status are final. Otherwise each invalid request would stop a FIFO lane for
/// the delay. A failure ends suspicions and confirmations.
struct RefusalCheck: Hashable, Sendable {
    /// How long a status stays confirmed, and the time after which failures no longer prevent a confirmation: 5 min. The
    /// server may have been deployed again since an earlier confirmation.
    static let longestConfirmation: Duration = .seconds(300)

    /// When the check began: with the lane's first request, its last failure, or the last outage.
    private(set) var since: Moment
    /// The end of the delay before an attempt that can confirm a refusal.
    private(set) var confirmableFrom: Moment = .zero
    private var suspected: Set<Int> = []
    /// Whether the lane has delivered a request since the last suspicion.
    private var hasDelivered = false
    /// When each status was confirmed.
    private var confirmed: [Int: Moment] = [:]
    /// When each status was refused first since the last delivery, confirmation or outage.
    private var firstRefused: [Int: Moment] = [:]
    /// From when an attempt confirms a status although the lane fails again and again.
    private var lateFrom: [Int: Moment] = [:]

    init(since: Moment) {
        self.since = since
    }

    /// Whether another attempt may confirm a refusal.
    var isPending: Bool { !suspected.isEmpty }

    /// Records a delivery. It shows that the server works, and may still refuse some requests.
    mutating func delivered() {
        hasDelivered = true
        (firstRefused, lateFrom) = ([:], [:])
    }

    /// Records a failure of the lane, after which refusals must be confirmed again.
    mutating func failed(now: Moment) {
        let (first, late) = (firstRefused, lateFrom)
        self = RefusalCheck(since: now)
        (firstRefused, lateFrom) = (first, late)
    }

    /// Ends the confirmations from before a failure of another lane, which concerns the same server. It does not end
    /// suspicions: otherwise a lane that fails again and again would delay the confirmations of this lane for ever.
    mutating func forgetConfirmations(before failure: Moment) {
        confirmed = confirmed.filter { $0.value > failure }
    }

    /// Records a refusal and returns whether it is final.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - isRepeated: Whether the previous response to the same request had this status, or the request is not repeated.
    ///   - began: When the attempt began. An attempt that began before ``since`` says nothing about the server as it is
    ///     now, and one that began before ``confirmableFrom`` does not confirm a refusal.
    ///   - delay: The delay before another attempt can confirm the refusal.
    mutating func refused(
        with status: Int,
        isRepeated: Bool,
        began: Moment,
        delay: Duration,
        now: Moment
    ) -> Bool {
        if let moment = confirmed[status], now - moment < Self.longestConfirmation { return true }
        let first = firstRefused[status, default: now]
        firstRefused[status] = first
        guard now - first < Self.longestConfirmation else {
            return isLateFinal(status, began: began, delay: delay, now: now)
        }
        guard began >= since else { return false }
        if suspected.contains(status) {
            guard began >= confirmableFrom else { return false }
            if isRepeated || !hasDelivered {
                confirm(status, now: now)
                return true
            }
        }
        suspected.insert(status)
        (confirmableFrom, hasDelivered) = (now + delay, false)
        return false
    }

    private mutating func confirm(_ status: Int, now: Moment) {
        suspected.remove(status)
        firstRefused[status] = nil
        confirmed[status] = now
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

/// The scheduler's state of a lane. It does not hold the lane's requests, only when the first of them is due.
struct SchedulerLane: Hashable, Sendable {
    let id: Int64
    let origin: Origin
    /// The lane's label, for reports.
    let label: String
    let mode: LaneKey.Mode

    /// A lower bound for the time at which the next request is due; `nil` if none is pending.
    var due: Moment?
    /// The requests in flight, plus the slots of an unfinished claim.
    var inflight = 0
    /// The slots of the unfinished claim.
    var claiming: Int?
    /// The number of unfinished claims that share a transaction with a conclusion. Each uses the slot of the concluded
    /// attempt.
    var nextClaims = 0
    /// The earliest due time reported during a claim, because the claim's result may not include it.
    var dueMeanwhile: Moment?

    /// Failures of single requests since the last success.
    var failures = 0
    /// The number of closures since the last success.
    var closures = 0
    var closedUntil: Moment = .zero
    /// The time until which the server closed the lane. A change of the gate does not shorten it.
    var serverNotBefore: Moment
    var distrustedUntil: Moment?
    /// Whether the lane waits for a flush or a restart.
    var isHeld = false
    /// Whether the lane sends a single request first, after a closure.
    var isHalfOpen = false
    /// A number that rises when earlier findings become invalid: at a closure and at a path change. Attempts of an
    /// earlier epoch do not close the lane again.
    var epoch = 0
    /// The epoch of the last path change or flush.
    var resetEpoch = 0
    /// The hold reasons to release with the next claim, which also makes waiting requests due; `nil` for a normal
    /// claim.
    var releasing: Set<HoldReason>?
    /// Whether a flush asked to try the lane regardless of the gate.
    var isForced = false
    var lastTry: Moment?
    /// The number of fast retries in a row.
    var reconnects = 0
    /// The time until which path errors are retried fast although there is a path; `nil` before the first such error.
    var reconnectsUntil: Moment?
    /// The number of attempts in a row that a shortage on this machine prevented.
    var shortages = 0

    init(_ info: Scheduler.LaneInfo) {
        id = info.id
        origin = info.origin
        label = info.label
        mode = info.mode
        serverNotBefore = info.notBefore ?? .zero
    }

    var host: String { origin.host }

    var isIdle: Bool {
        due == nil && inflight == 0 && !isClaiming && distrustedUntil == nil && !isHeld
    }

    /// The time until which the lane is closed after failures, including an untrusted server.
    var failuresEnd: Moment { max(closedUntil, distrustedUntil ?? .zero) }

    /// The time from which the lane may try, without regard to its gate.
    var opening: Moment { max(failuresEnd, serverNotBefore) }

    /// Whether a claim for the lane is in progress.
    var isClaiming: Bool { claiming != nil || nextClaims > 0 }

    mutating func rowsAreDue(at moment: Moment) {
        due = min(due ?? moment, moment)
        if isClaiming { dueMeanwhile = min(dueMeanwhile ?? moment, moment) }
    }

    /// Records the due time that a claim returned. Claims may return in another order than the store executed them, so
    /// the earliest time counts until all have returned.
    mutating func claimReturned(due next: Moment?) {
        due = [next, dueMeanwhile].compactMap(\.self).min()
        dueMeanwhile = isClaiming ? due : nil
    }

    mutating func close(until moment: Moment) {
        closures += 1
        failures = 0
        isHalfOpen = true
        pause(until: moment)
    }

    /// Closes the lane without lengthening the next closure. It does not set ``isHalfOpen``: with a limit of one
    /// request, attempts in flight that last long would block the lane.
    mutating func pause(until moment: Moment) {
        closedUntil = max(closedUntil, moment)
        epoch += 1
        isForced = false
    }

    /// Resets the failure state, because the server responded.
    mutating func recover() {
        failures = 0
        closures = 0
        closedUntil = .zero
        isHalfOpen = false
        reconnects = 0
        reconnectsUntil = nil
        shortages = 0
    }

    /// Discards all findings and makes waiting requests due now.
    mutating func reset(releasing reasons: Set<HoldReason>, now: Moment) {
        recover()
        epoch += 1
        resetEpoch = epoch
        distrustedUntil = nil
        releasing = (releasing ?? []).union(reasons)
        rowsAreDue(at: now)
    }
}

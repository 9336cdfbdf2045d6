/// The scheduler's state of a lane. It does not contain the lane's requests, only the time at which the first of them
/// is due.
struct SchedulerLane: Hashable, Sendable {
    /// The phase after an outage or an unconfirmed refusal in which the lane sends one request, the canary, before it sends
    /// others.
    struct Canary: Hashable, Sendable {
        /// The number of requests that were in flight at the path change or the refusal. They do not delay the canary.
        var older: Int
        /// The lane's epoch at that time. The requests that were in flight were claimed in earlier epochs.
        let epoch: Int
        /// The time after which the lane no longer waits for the canary; `nil` while none is in flight.
        var endsAt: Moment?
    }

    let id: Int64
    let key: LaneKey
    /// When the lane was created or loaded.
    let createdAt: Moment

    /// A lower bound for the time at which the next request is due; `nil` if none is pending.
    var due: Moment?
    /// The number of requests in flight, including the slots of unfinished claims.
    var inflight = 0
    /// The number of slots of the unfinished claim; `nil` if there is none.
    var claiming: Int?
    /// The number of unfinished claims by ``Scheduler/claimNext(lane:after:now:)``. One transaction stores the outcome
    /// of an attempt and claims the next request, which takes over the attempt's slot. ``claiming`` does not include
    /// them.
    var nextClaims = 0
    /// When the unfinished claims (``claiming`` and ``nextClaims``) took their turns of the rate.
    var claimedAt: Moment = .zero
    var nextClaimedAt: [Moment] = []
    /// The earliest due time that was reported during a claim. The store may have executed the claim before that time
    /// was known, so the claim's result may not include it.
    var dueMeanwhile: Moment?

    /// The number of failed requests since the last success or closure.
    var failures = 0
    /// The number of closures since the last success.
    var closures = 0
    /// The time until which the lane is closed after failures, a shortage or a missing path.
    var closedUntil: Moment = .zero
    /// The time until which the server closed the lane with `Retry-After`. A path change does not open the lane
    /// earlier, only a flush does.
    var serverNotBefore: Moment
    /// The time until which the lane is closed because its server was not trusted; `nil` if it is not.
    var distrustedUntil: Moment?
    /// Whether the lane waits for a flush or a restart.
    var isHeld = false
    /// Whether the lane was closed, and may have only one request in flight until the server responds.
    var isHalfOpen = false
    /// `nil` unless the lane waits for the first response after an outage, an opening by a response or an unconfirmed
    /// refusal.
    var canary: Canary?
    /// What is known about the refusals of requests.
    var refusals = RefusalCheck(since: .zero)
    /// A number that increases at each closure, path change, flush and opening by a response. An attempt that was
    /// claimed in an earlier epoch does not close the lane again.
    var epoch = 0
    /// The epoch of the last path change, flush or opening by a response.
    var resetEpoch = 0
    /// The hold reasons whose requests the next claim releases. Unless this is `nil`, the claim also makes all pending
    /// requests due.
    var releasing: Set<HoldReason>?
    /// Whether a flush asked to try the lane even if its gate reports no path.
    var isForced = false
    /// Whether a user or program asked for an attempt, with a flush or a release. The next claim may then take a retry
    /// even if the retry budget is used up.
    var isRequested = false
    /// Whether the lane has its turn for an attempt, although its host does not answer (``AttemptTurns``).
    var hasTurn = false
    /// Whether the lane uses the watch of its endpoint: it has requests in flight, or waits for a slot.
    var usesWatch = false
    /// The time until which the retry budget has postponed retries of the lane.
    var retriesPostponedUntil: Moment = .zero
    /// Whether the last attempt that counts as the server's failure got no response.
    var isUnanswered = false
    /// Whether the name of the host could not be looked up in the last attempt.
    var isUnresolved = false
    /// When a response to another lane or to a probe last opened the lane, or when the lane's first attempt after this
    /// opening began; `nil` if none did.
    var openedByResponse: Moment?
    /// Whether the lane has been opened by a response and has not claimed a request since.
    private var isFreshlyOpened = false
    /// The time until which the lane waits after a probe has succeeded (``Scheduler/Settings/reconnectSpread``).
    var opensAt: Moment = .zero
    /// The time of the last claim that found a request.
    var lastTry: Moment?
    /// The number of fast retries in a row.
    var reconnects = 0
    /// The time until which path errors are retried fast although a lookup finds a path; `nil` if there was no path
    /// error since the last success.
    var reconnectsUntil: Moment?
    /// The number of attempts in a row that failed because this machine was short of a resource.
    var shortages = 0

    init(_ info: Scheduler.LaneInfo, now: Moment = .zero) {
        id = info.id
        createdAt = now
        key = info.key
        serverNotBefore = info.notBefore ?? .zero
    }

    var origin: Origin { key.origin }
    var endpoint: Endpoint { origin.endpoint }
    var mode: LaneKey.Mode { key.mode }
    /// The conditions of the network and the time of day under which the lane's requests are sent.
    var constraints: RequestConstraints { key.constraints }

    /// Whether the scheduler can forget the lane: it has no pending request, no request in flight and no closure to
    /// remember.
    var isIdle: Bool {
        due == nil && inflight == 0 && !isClaiming && distrustedUntil == nil && !isHeld
    }

    /// The time until which the lane is closed after failures of any kind, including an untrusted server.
    var failuresEnd: Moment { max(closedUntil, distrustedUntil ?? .zero) }

    /// The time from which the lane may try requests, if its gate permits.
    var opening: Moment { max(failuresEnd, serverNotBefore) }

    /// Whether a claim for the lane is in progress.
    var isClaiming: Bool { claiming != nil || nextClaims > 0 }

    /// Records that a request may be due at the given time.
    mutating func rowsAreDue(at moment: Moment) {
        due = min(due ?? moment, moment)
        if isClaiming { dueMeanwhile = min(dueMeanwhile ?? moment, moment) }
    }

    /// Records the due time that a claim returned; `nil` if no pending request remains. Several claims may return in
    /// another order than the store executed them. Until all have returned, the earliest time counts.
    mutating func claimReturned(due next: Moment?) {
        due = [next, dueMeanwhile].compactMap(\.self).min()
        dueMeanwhile = isClaiming ? due : nil
    }

    /// Closes the lane after failures of the server. Each closure in a row is longer, and afterwards the lane is half
    /// open.
    mutating func close(until moment: Moment) {
        closures += 1
        failures = 0
        isHalfOpen = true
        pause(until: moment)
    }

    /// Closes the lane for a reason that is not the server's. The next closure does not become longer, and
    /// ``isHalfOpen`` is not set. That property would limit the lane to one request in flight, and a long attempt that
    /// is already in flight would then block the lane.
    mutating func pause(until moment: Moment) {
        closedUntil = max(closedUntil, moment)
        epoch += 1
        isForced = false
    }

    /// Resets everything that failures have changed, because the server responded.
    ///
    /// - Parameter isOnPath: Whether the attempt began after the last path change. The success of an earlier one does
    ///   not prove that the server can be reached over the current path, so the lane still waits for its canary.
    mutating func recover(isOnPath: Bool = true) {
        failures = 0
        closures = 0
        closedUntil = .zero
        isHalfOpen = false
        (isUnanswered, isUnresolved) = (false, false)
        if isOnPath { canary = nil }
        reconnects = 0
        reconnectsUntil = nil
        shortages = 0
    }

    /// Updates the canary after requests have ended, or after a claim that found none. If no request is younger than
    /// the path change, the next one is the canary.
    mutating func requestsEnded() {
        guard let older = canary?.older else { return }
        canary!.older = min(older, inflight)
        if inflight <= older { canary!.endsAt = nil }
    }

    /// Closes the lane until an attempt can confirm a refusal, which that attempt makes alone.
    mutating func awaitConfirmation(until moment: Moment) {
        pause(until: moment)
        // The attempt that was refused has ended, but is still counted until its outcome is stored.
        awaitCanary(besides: inflight - 1)
    }

    /// Resets the lane after an outage of its path, and makes it send one request before it sends others.
    mutating func beginAfterOutage(now: Moment) {
        refusals = RefusalCheck(since: now)
        awaitCanary(besides: inflight)
    }

    /// Makes the lane send one request before it sends others. Called after the failure state was reset.
    ///
    /// - Parameter older: The number of attempts in flight.
    private mutating func awaitCanary(besides older: Int) {
        canary = Canary(older: older, epoch: epoch)
    }

    /// Resets the failure state after a path change or a flush, and makes the pending requests due now.
    mutating func reset(releasing reasons: Set<HoldReason>, now: Moment) {
        recover()
        distrustedUntil = nil
        beginAgain(releasing: reasons, now: now)
    }

    /// Whether a response to another lane or to a probe opens the lane.
    func mayBeOpenedByResponse(now: Moment) -> Bool {
        isUnanswered && shortages == 0 && !isHeld && serverNotBefore <= now
    }

    /// Opens the lane for a canary, because its server has responded to another lane or to a probe. If the canary
    /// fails, the next closure is as long as it would have been without the response.
    ///
    /// - Parameter opensAt: The time until which the canary waits.
    mutating func openByResponse(at opensAt: Moment, now: Moment) {
        (failures, closedUntil, isUnanswered) = (0, .zero, false)
        (self.opensAt, openedByResponse, isFreshlyOpened) = (opensAt, max(now, opensAt), true)
        beginAgain(releasing: [], now: now)
        awaitCanary(besides: inflight)
    }

    /// Records that the lane has claimed requests. The first claim after an opening may be late, because of a rate limit or
    /// a missing slot.
    mutating func claimedAfterOpening(now: Moment) {
        if isFreshlyOpened { (openedByResponse, isFreshlyOpened) = (now, false) }
    }

    /// Makes the pending requests due now. The failures of attempts in flight no longer concern the lane.
    private mutating func beginAgain(releasing reasons: Set<HoldReason>, now: Moment) {
        epoch += 1
        resetEpoch = epoch
        retriesPostponedUntil = .zero
        releasing = (releasing ?? []).union(reasons)
        rowsAreDue(at: now)
    }
}

/// How an origin has responded lately, as far as the queue knows.
enum OriginStanding: Hashable, Sendable {
    /// No attempt has shown yet whether the server responds, or none has since an outage. A flush makes slow and silent
    /// origins new.
    case new
    /// The server responded to the last attempt, in less than ``Scheduler/Settings/slowAttempt``.
    case prompt
    /// The server responded to the last attempt, but took longer.
    case slow
    /// The server has responded before, but the last attempts got no response; `failures` is their number. The path may
    /// have failed at a place that the kernel does not see.
    case doubtful(failures: Int)
    /// Consecutive attempts got no response, although each waited at least ``Scheduler/Settings/silentAttempt``. For a
    /// new origin one attempt is enough; for an origin that has responded before, the number is ``doubtfulFailures``.
    case silent

    /// The number of failures in a row after which a server that has responded before counts as silent: 5, as many as
    /// close a lane.
    private static let doubtfulFailures = 5

    /// Returns the standing after an attempt that the server or the path decided.
    ///
    /// A failure that takes no time, for example a refused connection, keeps no slot busy. It therefore does not make
    /// an origin silent.
    func after(_ attempt: AttemptCourse, _ settings: Scheduler.Settings) -> OriginStanding {
        if attempt.hasResponse { return attempt.duration >= settings.slowAttempt ? .slow : .prompt }
        if attempt.isTimeout || attempt.duration >= settings.silentAttempt { return afterSilence }
        return self == .silent ? .new : self
    }

    private var afterSilence: OriginStanding {
        switch self {
        case .prompt, .slow: .doubtful(failures: 1)
        case .doubtful(let failures) where failures + 1 < Self.doubtfulFailures:
            .doubtful(failures: failures + 1)
        case .new, .doubtful, .silent: .silent
        }
    }
}

/// What the scheduler must know about an attempt to judge its server.
package struct AttemptCourse: Hashable, Sendable {
    /// How long the attempt occupied its slot.
    package var duration: Duration = .zero
    /// Whether a response arrived, of any status.
    package var hasResponse = false
    /// Whether a timeout ended the attempt.
    package var isTimeout = false
    /// Whether the attempt failed because the host's name could not be looked up.
    package var isUnresolved = false
    /// Whether an earlier attempt of the request has counted. If so, this attempt counts towards the origin's retry
    /// budget.
    package var isRetry = false

    package init(
        duration: Duration = .zero,
        hasResponse: Bool = false,
        isTimeout: Bool = false,
        isUnresolved: Bool = false,
        isRetry: Bool = false
    ) {
        (self.duration, self.hasResponse, self.isTimeout) = (duration, hasResponse, isTimeout)
        (self.isUnresolved, self.isRetry) = (isUnresolved, isRetry)
    }
}

/// The standings of origins that have no lanes any more. They are kept, so that an origin with occasional requests does
/// not count as new each time.
///
/// It holds the last 512 to 1024 origins, in two halves: a full half replaces the older one.
struct RecentStandings: Sendable {
    private struct Entry {
        let standing: OriginStanding
        /// The value of ``RecentStandings/period`` when the standing was remembered.
        let period: Int
    }

    private static let half = 512

    private var young: [Origin: Entry] = [:]
    private var old: [Origin: Entry] = [:]
    /// The number of calls of ``forgetFailures()``. Failures of earlier periods are ignored.
    private var period = 0

    mutating func remember(_ standing: OriginStanding, of origin: Origin) {
        guard standing != .new else { return }
        if young.count >= Self.half { (old, young) = (young, [:]) }
        young[origin] = Entry(standing: standing, period: period)
    }

    func standing(of origin: Origin) -> OriginStanding {
        guard let entry = young[origin] ?? old[origin] else { return .new }
        return entry.standing == .prompt || entry.period == period ? entry.standing : .new
    }

    /// Removes and returns the standing of an origin.
    mutating func take(_ origin: Origin) -> OriginStanding {
        defer { (young[origin], old[origin]) = (nil, nil) }
        return standing(of: origin)
    }

    /// Forgets which origins were slow, doubtful or silent.
    mutating func forgetFailures() { period += 1 }

    /// Forgets which of some origins were slow, doubtful or silent.
    mutating func forgetFailures(of isForgotten: (Origin) -> Bool) {
        young = young.filter { $0.value.standing == .prompt || !isForgotten($0.key) }
        old = old.filter { $0.value.standing == .prompt || !isForgotten($0.key) }
    }
}

/// Counts the common slots of origins that are not prompt, and limits them. Attempts to such origins may last for
/// minutes. Without these limits they would take all common slots, and leave one reserved slot to each prompt origin.
struct UnprovenSlots: Sendable {
    /// The maximum number for origins that are not prompt, all together: two thirds of the common slots.
    let limit: Int
    /// The maximum number for silent origins: half of ``limit``.
    let silentLimit: Int
    /// The number from which a new origin gets no second slot: half of ``limit``, but at least what one origin may
    /// have and at most ``limit``.
    let secondLimit: Int
    private(set) var all: Int
    private(set) var silent: Int

    init(common: Int, perOrigin: Int, all: Int = 0, silent: Int = 0) {
        (self.all, self.silent) = (all, silent)
        limit = max(1, common * 2 / 3)
        silentLimit = max(1, limit / 2)
        secondLimit = min(limit, max(perOrigin, limit / 2))
    }

    var hasRoom: Bool { all < limit }
    var hasRoomForSecond: Bool { all < secondLimit }
    var hasRoomForSilent: Bool { hasRoom && silent < silentLimit }
    /// Half of the slots for silent origins are kept for silent origins without a slot.
    var hasRoomForSecondSilent: Bool { hasRoom && silent < silentLimit / 2 }

    mutating func add(_ count: Int, _ standing: OriginStanding) {
        guard standing != .prompt else { return }
        all += count
        if standing == .silent { silent += count }
    }
}

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

/// A lane as the scheduler remembers it: never its requests, only when there is something to do.
struct SchedulerLane: Hashable, Sendable {
    let id: Int64
    let origin: Origin
    /// For people.
    let label: String
    let mode: LaneKey.Mode

    /// No later than the earliest moment a request may be due; `nil` when none is pending.
    var due: Moment?
    /// Requests being sent, and slots given to a claim that has not answered.
    var inflight = 0
    /// Slots of the claim that has not answered.
    var claiming: Int?
    /// Claims that share a transaction with a conclusion and have not answered. Each has the slot of the attempt that
    /// is concluded.
    var proceeding = 0
    /// What came while a claim was under way, which its answer may not know of.
    var dueMeanwhile: Moment?

    /// Failures of single requests since the last success.
    var failures = 0
    /// How often the lane closed since the last success.
    var closures = 0
    var closedUntil: Moment = .zero
    /// What the server asked for. No edge of the gate shortens it.
    var serverNotBefore: Moment
    var distrustedUntil: Moment?
    /// Until somebody acts.
    var isHeld = false
    /// After a closure one request goes first.
    var isHalfOpen = false
    /// Rises when what was learnt before no longer counts: at a closure and at an edge. Attempts that
    /// began before do not close the lane again.
    var epoch = 0
    /// The epoch of the last edge.
    var freshEpoch = 0
    /// What the next claim makes due and releases.
    var expediting: Set<HoldReason>?
    /// Somebody asked to try whatever the gate says.
    var isForced = false
    var lastTry: Moment?
    /// Fast repetitions in a row.
    var reconnects = 0
    /// Until when errors of a missing path are repeated fast although there is a path; `nil` until there is such an error.
    var reconnectsUntil: Moment?
    /// Attempts in a row that this machine was short of something for.
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

    /// Until when failures keep it closed, a server that is not trusted among them.
    var failuresEnd: Moment { max(closedUntil, distrustedUntil ?? .zero) }

    /// From when it may try, as far as its own past says.
    var opening: Moment { max(failuresEnd, serverNotBefore) }

    /// Whether the store may be claiming a request of the lane.
    var isClaiming: Bool { claiming != nil || proceeding > 0 }

    mutating func rowsAreDue(at moment: Moment) {
        due = min(due ?? moment, moment)
        if isClaiming { dueMeanwhile = min(dueMeanwhile ?? moment, moment) }
    }

    /// A claim found that the next of the requests left is due then. Claims may answer in another order than the store
    /// executed them, so the earliest moment counts until all have answered.
    mutating func claimAnswered(due next: Moment?) {
        due = [next, dueMeanwhile].compactMap(\.self).min()
        dueMeanwhile = isClaiming ? due : nil
    }

    mutating func close(until moment: Moment) {
        closures += 1
        failures = 0
        isHalfOpen = true
        pause(until: moment)
    }

    /// Closes the lane without making the next closure longer. No single request goes first after it: the attempts that
    /// are under way may last, and would keep it back.
    mutating func pause(until moment: Moment) {
        closedUntil = max(closedUntil, moment)
        epoch += 1
        isForced = false
    }

    /// A server answered: the lane works.
    mutating func recover() {
        failures = 0
        closures = 0
        closedUntil = .zero
        isHalfOpen = false
        reconnects = 0
        reconnectsUntil = nil
        shortages = 0
    }

    /// Everything learnt before is void; all that waits is tried now.
    mutating func startAfresh(releasing reasons: Set<HoldReason>, now: Moment) {
        recover()
        epoch += 1
        freshEpoch = epoch
        distrustedUntil = nil
        expediting = (expediting ?? []).union(reasons)
        rowsAreDue(at: now)
    }
}

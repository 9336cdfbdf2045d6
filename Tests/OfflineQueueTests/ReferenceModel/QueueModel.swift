internal import Foundation
internal import OfflineQueue

/// A simple model of a store, with which tests compare the real one. It uses arrays instead of a database, and shares
/// no code with the store.
///
/// All times are in milliseconds. A refused call changes nothing.
struct QueueModel {
    struct Clock: Hashable {
        var wall: Int64
        var sinceBoot: Int64
        var isSynchronized: Bool
        var boot = 1

        var offset: Int64 { wall - sinceBoot }
    }

    struct Request: Hashable {
        let id: String
        /// The content that must be the same if the id is enqueued again.
        let content: String
        let lane: LaneKey
        let priority: Int
        let size: Int64
        let bodyBytes: Int64
        var created: Int64
        let life: Int64
        let replaceKey: String?
        let maximumAttempts: Int?
        let mayBeSentTwice: Bool
        /// The idempotency key; `nil` if there is none, empty if the store has generated it and the model does not know
        /// it yet.
        var key: String?
        var state: QueuedRequest.State
        var reason: HoldReason?
        var pendingEdit: PendingEdit?
        var token: String?
        var due: Int64
        var scheduled: Int64?
        var waitsFor: Set<String> = []
        /// The id of a request in flight with the same replace key. This request waits until that one has ended in any
        /// way.
        var waitsForEndOf: String?
        var attempts = 0
        var deferrals = 0
        var boot: Int
        var bootEnd: Int64
        var wallEnd: Int64
        var status: Int?
        var lastError: String?
        var finished: Int64?
        /// The boot in which the request finished, and the time by its boot clock.
        var finishedBoot = 0
        var bootFinished: Int64 = 0
        var kept: Int64 = 0
        /// The position in the order of acceptance.
        let place: Int
        /// The position in the order in which requests finished.
        var position = 0
    }

    enum PendingEdit: Hashable {
        case cancel
        case hold
    }

    struct Lane: Hashable {
        var isPaused = false
        var closure: Closure?
    }

    /// The closure of a lane, by the clock of the current boot.
    struct Closure: Hashable {
        var end: Int64
        /// 0 after the end.
        var length: Int64
    }

    let settings: StoreSettings
    var clock: Clock
    /// Unfinished requests in order of acceptance.
    var live: [Request] = []
    var history: [Request] = []
    var lanes: [LaneKey: Lane] = [:]
    var isPaused = false
    private var accepted = 0
    private var ended = 0
    /// The difference between the wall clock and the boot clock at the last change.
    private(set) var followed: Int64
    /// The same difference when the clock was last known to be synchronized during this boot; `nil` if it never was.
    private var trusted: Int64?

    init(settings: StoreSettings, clock: Clock) {
        self.settings = settings
        self.clock = clock
        followed = clock.offset
        trusted = clock.isSynchronized ? clock.offset : nil
    }

    func index(of id: String) -> Int? { live.firstIndex { $0.id == id } }

    mutating func change(_ id: String, _ body: (inout Request) -> Void) {
        if let index = index(of: id) { body(&live[index]) }
    }

    mutating func nextPlace() -> Int {
        accepted += 1
        return accepted
    }

    /// Returns the position of a request that ends now.
    mutating func nextEnd() -> Int {
        ended += 1
        return ended
    }

    /// The hosts and labels of the paused lanes.
    var pausedLanes: [String] {
        Set(lanes.filter(\.value.isPaused).keys.map { "\($0.origin.host) \($0.label)" }).sorted()
    }

    mutating func pause(_ isPaused: Bool) {
        self.isPaused = isPaused
        guard !isPaused else { return }
        for lane in lanes.keys { lanes[lane]!.isPaused = false }
    }

    /// The requests in the order of a list: unfinished ones, the oldest first, and then finished ones, the newest
    /// first.
    var listed: [Request] { live + history.sorted { $0.position > $1.position } }
}

// MARK: - Shared transitions

extension QueueModel {
    mutating func end(
        _ id: String,
        _ state: QueuedRequest.State,
        error: String? = nil,
        _ outcome: Conclusion? = nil
    ) {
        guard let index = index(of: id) else { return }
        var request = live.remove(at: index)
        request.position = nextEnd()
        request.state = state
        request.finish(at: clock)
        request.reason = nil
        request.token = nil
        request.pendingEdit = nil
        request.status = outcome?.status ?? request.status
        request.lastError = state == .delivered ? nil : error ?? outcome?.detail ?? request.lastError
        let answer = Int64(outcome?.response?.body.count ?? 0)
        request.kept = request.size - (state == .dead ? 0 : request.bodyBytes) + answer
        history.append(request)
        for rival in live where rival.waitsForEndOf == id { letGo(rival.id) }
        guard state != .superseded else { return }
        for dependent in live where dependent.waitsFor.contains(id) {
            if state == .delivered { arrived(id, for: dependent.id) } else { lost(id, for: dependent.id) }
        }
    }

    /// Ends the wait of a request for the request in flight with the same replace key.
    mutating func letGo(_ id: String) {
        change(id) { $0.waitsForEndOf = nil }
        wakeUnlessWaiting(id)
    }

    private mutating func wakeUnlessWaiting(_ id: String) {
        let now = clock.wall
        change(id) { request in
            guard request.state == .blocked, request.waitsFor.isEmpty, request.waitsForEndOf == nil else {
                return
            }
            request.state = .pending
            request.due = max(now, request.scheduled ?? now)
        }
    }

    private mutating func arrived(_ id: String, for dependent: String) {
        change(dependent) { $0.waitsFor.remove(id) }
        wakeUnlessWaiting(dependent)
    }

    mutating func lost(_ id: String, for dependent: String) {
        change(dependent) { request in
            request.waitsFor.remove(id)
            request.state = .held
            request.reason = .dependency
        }
    }

    /// Makes the requests that depend on `old` depend on `new`. If `new` itself waits for one of them, because it
    /// depends on the request or follows it in a FIFO lane, they are held instead.
    mutating func passDependents(of old: String, to new: String) {
        let isCircle = needs(new, old)
        for dependent in live where dependent.waitsFor.contains(old) {
            if isCircle {
                lost(old, for: dependent.id)
            } else {
                change(dependent.id) { $0.waitsFor = $0.waitsFor.subtracting([old]).union([new]) }
            }
        }
    }

    private func needs(_ id: String, _ other: String) -> Bool {
        var (open, seen) = ([id], Set([id]))
        while let next = open.popLast() {
            if next == other { return true }
            guard let index = index(of: next) else { continue }
            let request = live[index]
            let ahead = live[..<index].filter {
                request.lane.mode == .fifo && $0.lane == request.lane && !$0.waitsFor.isEmpty
            }
            open += request.waitsFor.union(ahead.map(\.id)).filter { seen.insert($0).inserted }
        }
        return false
    }

    mutating func free(_ id: String) {
        let now = clock.wall
        change(id) { request in
            request.reason = nil
            let isBlocked = !request.waitsFor.isEmpty || request.waitsForEndOf != nil
            request.state = isBlocked ? .blocked : .pending
            if request.state == .pending { request.due = max(now, request.scheduled ?? now) }
        }
    }

    mutating func release(_ reasons: Set<HoldReason>, lane: LaneKey? = nil) {
        for request in live where request.state == .held && request.lane == lane ?? request.lane {
            if reasons.contains(request.reason!) { free(request.id) }
        }
    }

    func isExpired(_ request: Request) -> Bool {
        if request.boot == clock.boot { return request.bootEnd <= clock.sinceBoot }
        return request.wallEnd <= clock.wall && (clock.isSynchronized || request.life <= clock.sinceBoot)
    }
}

// MARK: - Time and recovery

extension QueueModel {
    /// Moves due times in the future by a step of the wall clock.
    private mutating func moveDues(by step: Int64) {
        let now = clock.wall
        for request in live where request.state == .pending {
            let asked = request.scheduled ?? 0
            guard request.due > min(now, now - step), request.due > asked else { continue }
            change(request.id) { $0.due = max(now, request.due + step, asked) }
        }
    }

    /// Every change begins with this: after a step of the wall clock, the stored dates are adjusted.
    mutating func beginChange() {
        if followed != clock.offset { followClock() }
    }

    private mutating func followClock() {
        if clock.isSynchronized { trusted = clock.offset }
        guard followed != clock.offset else { return }
        let step = clock.offset - followed
        moveCreationDates(until: clock.sinceBoot, by: step)
        followed = clock.offset
        for index in live.indices where live[index].boot == clock.boot {
            live[index].wallEnd = live[index].bootEnd + followed
        }
        for index in history.indices where history[index].finishedBoot == clock.boot {
            history[index].finished = history[index].bootFinished + followed
        }
        moveDues(by: step)
    }

    /// Moves the dates that the wall clock showed during this boot, until a time of the boot clock.
    private mutating func moveCreationDates(until last: Int64, by step: Int64) {
        let (first, latest) = (followed, followed + last)
        for index in live.indices where first <= live[index].created && live[index].created <= latest {
            live[index].created += step
        }
        for index in history.indices where first <= history[index].created && history[index].created <= latest
        {
            history[index].created += step
        }
    }

    mutating func expire() -> Int64? {
        followClock()
        for key in lanes.keys where closed(lanes[key]!) == 0 { lanes[key]!.closure?.length = 0 }
        let expired = live.filter { $0.state != .inflight && $0.wallEnd <= clock.wall && isExpired($0) }
        for request in expired.sorted(by: { ($0.wallEnd, $0.place) < ($1.wallEnd, $1.place) }) {
            end(request.id, .dead, error: "time to live exceeded")
        }
        purgeHistory()
        for (key, lane) in lanes where !lane.isPaused && closed(lane) == 0 {
            if !live.contains(where: { $0.lane == key }) { lanes[key] = nil }
        }
        let counted = live.filter { request in
            request.state != .inflight
                && (request.boot == clock.boot || clock.isSynchronized || request.life <= clock.sinceBoot)
        }
        return counted.map(\.wallEnd).min().map { max(0, $0 - clock.wall) }
    }

    private mutating func purgeHistory() {
        let retention = settings.retention
        for state in [QueuedRequest.State.delivered, .dead, .cancelled, .superseded] {
            let age = (state == .dead ? retention.dead : retention.done).components.seconds * 1000
            history.removeAll { request in
                let isKnown =
                    request.finishedBoot == clock.boot || clock.isSynchronized || age <= clock.sinceBoot
                return request.state == state && request.finished! <= clock.wall - age && isKnown
            }
            guard state != .dead else { continue }
            let newest = history.filter { $0.state == state }
                .sorted { ($0.finished!, $0.position) > ($1.finished!, $1.position) }
            let forgotten = Set(newest.dropFirst(retention.doneCount).map(\.id))
            history.removeAll { forgotten.contains($0.id) }
        }
        while history.reduce(0, { $0 + $1.kept }) > retention.bytes {
            let oldest = history.filter { $0.kept > 0 }.min { $0.position < $1.position }!
            history.removeAll { $0.id == oldest.id }
        }
    }

    /// Returns for how long the lane is still closed.
    func closed(_ lane: Lane) -> Int64 { max(0, (lane.closure?.end ?? 0) - clock.sinceBoot) }

    /// Gives the times of the ended boot their meaning in the current one.
    private mutating func rebooted() {
        let ended = clock.boot - 1
        let written =
            live.filter { $0.boot == ended }.map { min($0.bootEnd - $0.life, $0.created - followed) }
            + history.filter { $0.finishedBoot == ended }.map(\.bootFinished)
            + lanes.values.compactMap(\.closure).map { $0.end - $0.length }
        continueTimes(ofBoot: ended, at: max(0, written.max() ?? 0))
        followed = clock.offset
        trusted = clock.isSynchronized ? clock.offset : nil
    }

    /// - Parameter last: The latest known time of the ended boot.
    private mutating func continueTimes(ofBoot ended: Int, at last: Int64) {
        let shift = trusted == nil ? clock.sinceBoot - last : 0
        let offset = trusted ?? clock.offset
        moveCreationDates(until: last, by: shift + offset - followed)
        for index in live.indices where live[index].boot == ended {
            if trusted == nil { live[index].boot = clock.boot }
            live[index].bootEnd += shift
            live[index].wallEnd = live[index].bootEnd + offset
        }
        for index in history.indices where history[index].finishedBoot == ended {
            if trusted == nil { history[index].finishedBoot = clock.boot }
            history[index].bootFinished += shift
            history[index].finished = history[index].bootFinished + offset
        }
        let isOffKnown = trusted != nil && clock.isSynchronized
        let start = isOffKnown ? clock.wall - trusted! : last
        for key in lanes.keys {
            guard let closure = lanes[key]!.closure else { continue }
            let rest = max(0, min(closure.length, closure.end - start))
            lanes[key]!.closure = Closure(end: clock.sinceBoot + rest, length: rest)
        }
    }

    /// Recovers the requests in flight, like a store that a new owner has opened.
    mutating func reopened(releasing reasons: Set<HoldReason>, isOtherBoot: Bool) {
        if isOtherBoot { rebooted() }
        beginChange()
        for orphan in live where orphan.state == .inflight {
            let interruption = Conclusion(
                sequence: 0,
                token: "",
                verdict: .retry(countsAsAttempt: true),
                detail: RequestLifecycle.interruptedReason
            )
            let state: QueuedRequest.State = orphan.mayBeSentTwice ? .pending : .held
            comeBack(orphan.id, to: state, .ambiguous, due: clock.wall, interruption)
        }
        release(reasons)
    }

    /// Returns the time until the lane's next request may be due; `nil` if none is pending.
    func due(_ lane: LaneKey) -> Int64? {
        guard !isPaused, lanes[lane]?.isPaused != true else { return nil }
        var waiting = live.filter { $0.lane == lane }
        if lane.mode == .fifo { waiting = Array(waiting.prefix(1)) }
        waiting.removeAll { $0.state != .pending }
        let longest = settings.longestDelay.components.seconds * 1000
        return waiting.map(\.due).min().map { min(max(0, $0 - clock.wall), longest) }
    }
}

extension QueueModel.Request {
    mutating func finish(at clock: QueueModel.Clock) {
        (finished, finishedBoot, bootFinished) = (clock.wall, clock.boot, clock.sinceBoot)
    }
}

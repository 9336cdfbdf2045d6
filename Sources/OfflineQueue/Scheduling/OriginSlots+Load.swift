internal import NetwatchEventLoop

// Records what attempts show about the load of servers, and what the ramp and the retry budget permit.

extension OriginSlots {
    /// Returns the standing of an origin, which may have no lanes.
    func lastStanding(of origin: Origin) -> OriginStanding {
        origins[origin]?.standing ?? recent.standing(of: origin)
    }

    func standing(of origin: Origin) -> OriginStanding { origins[origin]?.standing ?? .new }

    mutating func setStanding(_ standing: OriginStanding, of origin: Origin) {
        guard let old = origins[origin]?.standing else { return }
        if old != standing { origins[origin]!.standingSince = now }
        change(origin) { $0.standing = standing }
        updateTurn(origin)
    }

    /// Returns whether an attempt of this duration, which ends now, began after the last change of the standing. The
    /// failures of attempts that were in flight together count once.
    func isAfterStandingChange(_ attempt: AttemptCourse, about origin: Origin) -> Bool {
        guard let since = origins[origin]?.standingSince else { return false }
        return now >= since + attempt.duration
    }

    /// Forgets that the server of an origin was slow or silent.
    mutating func forgetFailures(of origin: Origin) {
        if standing(of: origin) != .prompt { setStanding(.new, of: origin) }
    }

    /// Records that the server of an origin responded to an attempt that began at the given time.
    ///
    /// - Parameter isOnPath: Whether the attempt began after the last path change.
    mutating func recordSuccess(of origin: Origin, began: Moment, isOnPath: Bool = true, now: Moment) {
        origins[origin]?.window.succeeded(began: began)
        if isOnPath { changeRamp { $0.succeeded(origin, now: now) } }
        updateTurn(origin)
    }

    /// Records that an attempt that began at the given time failed because of overload.
    mutating func recordOverload(of origin: Origin, began: Moment, now: Moment) {
        origins[origin]?.window.overloaded(began: began, now: now)
        updateTurn(origin)
    }

    /// Reserves retries of an origin for a claim; see ``RetryBudget/reserve(_:atLeast:now:)``.
    mutating func reserveRetries(
        _ count: Int,
        atLeast minimum: Int,
        of origin: Origin,
        now: Moment
    ) -> RetryAllowance? {
        origins[origin]?.retries.reserve(count, atLeast: minimum, now: now)
    }

    /// Records that a retry that began at the given time has succeeded.
    mutating func recordSuccessfulRetry(of origin: Origin, began: Moment) {
        origins[origin]?.retries.retrySucceeded(began: began)
    }

    /// Records what a claim took.
    mutating func record(_ use: RetryUse, of origin: Origin, now: Moment) {
        origins[origin]?.retries.record(use, now: now)
    }

    /// Records an attempt that failed because of the path, the server or its overload.
    mutating func recordFailure(of origin: Origin) { origins[origin]?.lastFailure = now }

    /// Returns the time of the last failed attempt; `nil` if there was none since the origin got its first lane.
    func lastFailure(of origin: Origin) -> Moment? { origins[origin]?.lastFailure }

    /// Records that an origin became reachable again. What was known about its server belongs to the time before the
    /// outage.
    mutating func reconnected(_ origin: Origin, now: Moment) {
        guard let state = origins[origin] else { return }
        setStanding(.new, of: origin)
        changeRamp { $0.join(origin, inflight: state.inflight, now: now) }
        updateTurn(origin)
    }

    /// Records that an origin is no longer reachable, or that a flush demands all requests now.
    mutating func leaveRamp(_ origin: Origin) {
        changeRamp { $0.leave(origin) }
        updateTurn(origin)
    }

    /// Ends the ramp if its time is over.
    mutating func endRampIfDone(now: Moment) {
        changeRamp { $0.endIfDone(now: now) }
    }

    /// Changes the ramp. If that ends it, its origins continue without it.
    mutating func changeRamp(_ change: (inout ReconnectRamp) -> Void) {
        change(&ramp)
        for origin in ramp.takeReleased() { updateTurn(origin) }
    }
}

// Keeps origins out of the lines while a rate limit permits no request to them.

extension OriginSlots {
    /// Sets the time, and puts the origins whose rate limits permit a request back into their lines.
    mutating func advance(to now: Moment) {
        self.now = max(self.now, now)
        while let host = openings.removeFirst(until: now) {
            for origin in throttled.removeValue(forKey: host) ?? [] { updateTurn(origin) }
        }
    }

    /// The time at which a waiting lane may get a slot because a rate limit then permits it; `nil` if no lane waits for
    /// that.
    var rateOpening: Moment? {
        let isAwaited = lines.contains { !$0.isEmpty }
        let all = isAwaited ? rates.opensAt.flatMap { $0 > now ? $0 : nil } : nil
        let host = openings.first.map { max($0, rates.opensAt ?? $0) }
        return [all, host].compactMap(\.self).min()
    }

    /// Returns whether a rate limit permits no request to an origin now.
    func isThrottled(_ origin: Origin) -> Bool {
        [rates.opensAt, rates.opensAt(origin.host)].contains { $0.map { $0 > now } ?? false }
    }

    /// Records a request that takes over the slot of a finished one.
    mutating func tookOver(_ origin: Origin) {
        rates.take(of: origin.host, now: now)
    }

    /// Records how many slots of a claim found no request, and gives their share of the rate back.
    ///
    /// - Parameter taken: The time of ``now`` when the claim got its slots.
    mutating func settleRate(unused: Int, of count: Int, taken: Moment, of origin: Origin) {
        rates.settle(unused: unused, of: count, to: origin.host, taken: taken)
        if unused > 0, throttled[origin.host] != nil {
            openings.set(origin.host, to: rates.opensAt(origin.host))
        }
    }

    /// Keeps an origin with waiting lanes out of the lines while the rate limit of its host permits no request. Returns
    /// whether it does.
    mutating func throttle(_ origin: Origin) -> Bool {
        guard let opening = rates.opensAt(origin.host), opening > now else { return false }
        guard line(for: origin) != nil else { return true }
        if throttled[origin.host]?.contains(origin) != true {
            throttled[origin.host, default: []].append(origin)
        }
        openings.set(origin.host, to: opening)
        return true
    }
}

/// What is in use of a limited number of things that users share. Each use is counted for the user who was first to need
/// it, and has a holder, which yields to another one after it has not used the thing for a while.
struct SharedUse<Holder: Hashable & Comparable & Sendable>: Sendable {
    private var counts: [UInt32?: Int] = [:]
    private var count = 0
    /// The times from which holders may yield, by the user whose share contains them.
    private var idle: [UInt32?: Timetable<Holder, Moment>] = [:]

    /// Returns whether a user may have another use without a holder that yields.
    func hasRoom(for submitter: UInt32?, in limit: SharedLimit) -> Bool {
        fullScope(for: submitter, in: limit) == nil
    }

    mutating func began(for submitter: UInt32?) {
        counts[submitter, default: 0] += 1
        count += 1
    }

    mutating func ended(_ holder: Holder, for submitter: UInt32?) {
        setYield(holder, for: submitter, from: nil)
        count -= 1
        counts[submitter]! -= 1
        if counts[submitter] == 0 { counts[submitter] = nil }
    }

    func mayYield(_ holder: Holder, for submitter: UInt32?) -> Bool {
        idle[submitter]?.contains(holder) == true
    }

    /// Sets the time from which a holder may yield.
    ///
    /// - Parameter moment: The time; `nil` for a holder that needs what it has.
    mutating func setYield(_ holder: Holder, for submitter: UInt32?, from moment: Moment?) {
        if moment == nil, idle[submitter] == nil { return }
        idle[submitter, default: Timetable()].set(holder, to: moment)
        if idle[submitter]?.first == nil { idle[submitter] = nil }
    }

    /// Returns when the first holder may yield to a user, and the user whose share contains it; `nil` if none may, or if
    /// there is room. While the user has their share, only their own holders yield.
    func firstIdle(for submitter: UInt32?, in limit: SharedLimit) -> (at: Moment, owner: UInt32?)? {
        guard let scope = fullScope(for: submitter, in: limit) else { return nil }
        // Of equal times, the smallest id is first, so that a run can be replayed.
        func number(_ owner: UInt32?) -> Int64 { owner.map { Int64($0) } ?? -1 }
        return idle.compactMap { owner, times in times.first.map { (at: $0, owner: owner) } }
            .filter { Self.isCounted($0.owner, in: scope, of: submitter) }
            .min { ($0.at, number($0.owner)) < ($1.at, number($1.owner)) }
    }

    /// Returns whether a user may have another use now, possibly after a holder has yielded.
    func mayBegin(for submitter: UInt32?, in limit: SharedLimit, now: Moment) -> Bool {
        if hasRoom(for: submitter, in: limit) { return true }
        return firstIdle(for: submitter, in: limit).map { $0.at <= now } ?? false
    }

    /// Removes and returns the holder that must yield before another use of a user begins; `nil` if there is room.
    mutating func takeYielding(to submitter: UInt32?, in limit: SharedLimit, now: Moment) -> Holder? {
        // Not `firstIdle(for:in:)?.owner`: what the service itself uses has no owner.
        guard let first = firstIdle(for: submitter, in: limit) else { return nil }
        return idle[first.owner]?.removeFirst(until: now)
    }

    /// Returns the narrowest limit that is reached for a user; `nil` if there is room.
    private func fullScope(for submitter: UInt32?, in limit: SharedLimit) -> SharedLimit.Scope? {
        let scopes: [SharedLimit.Scope] = submitter == nil ? [.all] : [.user, .users, .all]
        return scopes.first { use(of: $0, submitter) >= limit.value(for: $0) }
    }

    private func use(of scope: SharedLimit.Scope, _ submitter: UInt32?) -> Int {
        switch scope {
        case .user: counts[submitter, default: 0]
        case .users: count - counts[nil, default: 0]
        case .all: count
        }
    }

    private static func isCounted(_ owner: UInt32?, in scope: SharedLimit.Scope, of submitter: UInt32?)
        -> Bool
    {
        switch scope {
        case .user: owner == submitter
        case .users: owner != nil
        case .all: true
        }
    }
}

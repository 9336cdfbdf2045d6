/// What is in use of a limited number of things that users share. Each use is counted for the user who was first to need
/// it, and has a holder, which yields to another one after it has not used the thing for a while.
struct SharedUse<Holder: Hashable & Comparable & Sendable>: Sendable {
    private var counts: [UInt32?: Int] = [:]
    private var count = 0
    /// The times from which holders may yield, by the user whose share contains them.
    private var idle: [UInt32?: Timetable<Holder>] = [:]

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

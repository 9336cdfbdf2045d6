/// Limits the slots of the origins that became reachable a moment ago, all of them together. The limit starts low and
/// doubles with each round of successes.
///
/// Other origins are not limited, so a host that loses its path again and again does not slow down the others. An
/// origin that joins a ramp in progress does not lower its limit.
///
/// The limit is for origins that have responded since they joined. The slots of the others do not count, so that many
/// dead hosts do not slow down a healthy one. Each of these origins has one slot, and all of them together have a few
/// more, as many as the start of the ramp less one.
struct ReconnectRamp: Sendable {
    private struct Member: Sendable {
        /// The number of slots that are older than the last outage. They do not count, because their attempts began at
        /// another time and over another path.
        var older: Int
        /// The number of slots that count.
        var counted = 0
        var hasResponded = false

        /// The number of slots that count against the limit of ``ReconnectRamp/limit(of:)``.
        var charged: Int { hasResponded ? counted : max(0, counted - 1) }
    }

    /// The limit at the start of a ramp.
    let start: Int
    /// The limit at which a ramp ends.
    var ceiling: Int
    /// The maximum duration of a ramp.
    let duration: Duration

    private(set) var limit: Int
    /// The time at which the ramp ends if it does not reach the ceiling; `nil` without a ramp.
    private(set) var endsAt: Moment?
    private var members: [Origin: Member] = [:]
    /// The number of charged slots of origins that have responded.
    private var responding = 0
    /// The number of charged slots of the other origins.
    private var silent = 0
    /// The number of successes since the last change of the limit.
    private var successes = 0
    /// The origins of a ramp that has ended, until ``takeReleased()`` returns them.
    private var released: [Origin] = []

    init(start: Int, ceiling: Int, duration: Duration) {
        (self.start, self.ceiling, self.duration) = (start, ceiling, duration)
        limit = start
    }

    func contains(_ origin: Origin) -> Bool { members[origin] != nil }

    func hasResponded(_ origin: Origin) -> Bool { members[origin]?.hasResponded == true }

    /// Returns whether origins that have responded, or the others, may have another slot besides their first ones.
    func hasRoom(hasResponded: Bool) -> Bool {
        hasResponded ? responding < limit : silent < start - 1
    }

    /// Returns whether a slot that the origin releases must not be reused.
    func isOverLimit(_ origin: Origin) -> Bool {
        guard let member = members[origin], member.counted > 1 else { return false }
        return member.hasResponded ? responding > limit : silent > start - 1
    }

    /// Returns the number of an origin's slots that count; `nil` if the origin is not in the ramp.
    func counted(of origin: Origin) -> Int? { members[origin]?.counted }

    /// Adds an origin. Its slots in use do not count.
    mutating func join(_ origin: Origin, inflight older: Int, now: Moment) {
        leave(origin)
        if members.isEmpty { (limit, successes, endsAt) = (start, 0, now + duration) }
        members[origin] = Member(older: older)
        endIfDone(now: now)
    }

    mutating func leave(_ origin: Origin) {
        change(origin) { $0.counted = 0 }
        members[origin] = nil
        if members.isEmpty { end() }
    }

    mutating func took(of origin: Origin) {
        change(origin) { $0.counted += 1 }
    }

    /// Records released slots. The oldest ones are released first.
    mutating func released(_ count: Int, of origin: Origin) {
        change(origin) { member in
            let older = min(count, member.older)
            member.older -= older
            member.counted -= count - older
        }
    }

    mutating func succeeded(_ origin: Origin, now: Moment) {
        guard contains(origin) else { return }
        change(origin) { $0.hasResponded = true }
        successes += 1
        if successes >= limit { (limit, successes) = (2 * limit, 0) }
        endIfDone(now: now)
    }

    /// Ends the ramp if its limit has reached the ceiling, or if it has lasted for its maximum duration.
    mutating func endIfDone(now: Moment) {
        guard let endsAt, limit >= ceiling || endsAt <= now else { return }
        end()
    }

    /// Returns the origins that continue without a ramp because it has ended, each once.
    mutating func takeReleased() -> [Origin] {
        defer { released = [] }
        return released
    }

    /// Changes a member, and keeps the numbers of charged slots up to date.
    private mutating func change(_ origin: Origin, _ change: (inout Member) -> Void) {
        guard var member = members[origin] else { return }
        charge(-member.charged, member)
        change(&member)
        charge(member.charged, member)
        members[origin] = member
    }

    private mutating func charge(_ count: Int, _ member: Member) {
        if member.hasResponded { responding += count } else { silent += count }
    }

    private mutating func end() {
        // The order must not depend on hash seeds, so that a run can be replayed.
        released += members.keys.sorted { ($0.host, $0.scheme, $0.port) < ($1.host, $1.scheme, $1.port) }
        members = [:]
        (responding, silent, endsAt) = (0, 0, nil)
    }
}

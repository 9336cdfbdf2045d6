/// Which lane gets the next free slot. A slot is the right to send one request.
///
/// Origins take turns, and within an origin its lanes do, so that neither many requests nor many lanes bring an origin
/// more. No origin has more slots than ``Limits/perOrigin``. A part of all slots, ``Limits/reserved``, is only for the
/// first slot of an origin that has none, and not for one whose attempts were slow lately: however long others hold
/// theirs, an origin that is new can begin.
struct OriginSlots: Sendable {
    struct Limits: Hashable, Sendable {
        let total: Int
        let perOrigin: Int
        let reserved: Int

        var common: Int { total - reserved }
    }

    private struct Account: Sendable {
        var inflight = 0
        /// Whether one of its slots is of the reserve. No origin has two, because it had none when it got the first.
        var hasReserved = false
        var isSlow = false
        /// The lanes that may take a slot.
        var lanes = TurnLine<Int64>()
        /// How many lanes it has in all.
        var laneCount = 0

        var isFresh: Bool { inflight == 0 && !isSlow }
    }

    let limits: Limits
    private(set) var inflight = 0
    private var reservedInUse = 0
    private var accounts: [Origin: Account] = [:]
    /// Origins that may take a slot of the reserve too, and those that may not.
    private var fresh = TurnLine<Origin>()
    private var others = TurnLine<Origin>()
    private var isTurnOfOthers = false

    init(limits: Limits) {
        self.limits = limits
    }

    var isFull: Bool { inflight >= limits.total }

    /// Whether a lane waits for a slot that an origin has.
    func isAwaited(slotOf origin: Origin) -> Bool {
        // The lanes of an origin that has all the slots it may have are in neither line.
        !fresh.isEmpty || !others.isEmpty || accounts[origin].map { !$0.lanes.isEmpty } ?? false
    }

    private var hasCommon: Bool { inflight - reservedInUse < limits.common }
    private var hasReserved: Bool { reservedInUse < limits.reserved }
}

// MARK: - Lanes

extension OriginSlots {
    mutating func open(laneOf origin: Origin) {
        accounts[origin, default: Account()].laneCount += 1
    }

    /// A lane that is gone, with no slot left. What was learnt of its origin goes with the last one.
    mutating func close(_ lane: Int64, of origin: Origin) {
        leave(lane, of: origin)
        accounts[origin]?.laneCount -= 1
        if accounts[origin]?.laneCount == 0 { accounts[origin] = nil }
    }

    /// The lane may take a slot. If it waits for one already, it keeps its place.
    mutating func join(_ lane: Int64, of origin: Origin) {
        accounts[origin]?.lanes.append(lane)
        seat(origin)
    }

    mutating func leave(_ lane: Int64, of origin: Origin) {
        accounts[origin]?.lanes.remove(lane)
        seat(origin)
    }

    func isWaiting(_ lane: Int64, of origin: Origin) -> Bool {
        accounts[origin]?.lanes.contains(lane) == true
    }

    /// Puts the origin where it waits for its turn.
    private mutating func seat(_ origin: Origin) {
        let account = accounts[origin]
        let isWaiting = account.map { !$0.lanes.isEmpty && $0.inflight < limits.perOrigin } ?? false
        let isFresh = account?.isFresh == true
        if isWaiting && isFresh { fresh.append(origin) } else { fresh.remove(origin) }
        if isWaiting && !isFresh { others.append(origin) } else { others.remove(origin) }
    }
}

// MARK: - Slots

extension OriginSlots {
    /// Gives a slot to the lane whose turn it is, which leaves its line; `nil` when no lane may have one.
    mutating func take() -> Int64? {
        guard let origin = nextOrigin(), let lane = accounts[origin]!.lanes.removeFirst() else { return nil }
        if !hasCommon {
            accounts[origin]!.hasReserved = true
            reservedInUse += 1
        }
        accounts[origin]!.inflight += 1
        inflight += 1
        seat(origin)
        return lane
    }

    /// Common slots go to both kinds of origins in turn: new ones come without end, and must not delay the others
    /// for ever.
    private mutating func nextOrigin() -> Origin? {
        guard hasCommon else { return hasReserved ? fresh.removeFirst() : nil }
        defer { isTurnOfOthers.toggle() }
        if isTurnOfOthers { return others.removeFirst() ?? fresh.removeFirst() }
        return fresh.removeFirst() ?? others.removeFirst()
    }

    /// Slots that are free again. That of the reserve goes first, for the next origin that needs it.
    mutating func release(_ count: Int, of origin: Origin) {
        guard count > 0, accounts[origin] != nil else { return }
        if accounts[origin]!.hasReserved {
            accounts[origin]!.hasReserved = false
            reservedInUse -= 1
        }
        accounts[origin]!.inflight -= count
        inflight -= count
        seat(origin)
    }

    /// Learns how long an attempt held its slot.
    mutating func learn(_ origin: Origin, isSlow: Bool) {
        accounts[origin]?.isSlow = isSlow
        seat(origin)
    }
}

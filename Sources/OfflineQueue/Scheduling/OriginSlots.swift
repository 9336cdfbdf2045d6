/// The allocation of slots to lanes. A slot is the right to send one request.
///
/// Origins take turns, and so do the lanes of an origin. An origin therefore gains nothing from many requests or many
/// lanes. No origin has more than ``Limits/perOrigin`` slots. ``Limits/reserved`` slots are kept for the first slot of
/// an origin that has none, unless its last attempt was slow. A new origin can therefore start, however long others
/// keep their slots.
struct OriginSlots: Sendable {
    struct Limits: Hashable, Sendable {
        let total: Int
        let perOrigin: Int
        let reserved: Int

        var common: Int { total - reserved }
    }

    private struct OriginState: Sendable {
        var inflight = 0
        /// Whether one of its slots is reserved. An origin has at most one, because it had no slot when it got it.
        var hasReserved = false
        var isSlow = false
        /// The lanes that wait for a slot, in turn.
        var lanes = UniqueQueue<Int64>()
        /// The number of its lanes, waiting or not.
        var laneCount = 0

        var isFresh: Bool { inflight == 0 && !isSlow }
    }

    let limits: Limits
    private(set) var inflight = 0
    private var reservedInUse = 0
    private var origins: [Origin: OriginState] = [:]
    /// The waiting origins: those that may also take a reserved slot, and those that may not.
    private var fresh = UniqueQueue<Origin>()
    private var others = UniqueQueue<Origin>()
    private var isTurnOfOthers = false

    init(limits: Limits) {
        self.limits = limits
    }

    var isFull: Bool { inflight >= limits.total }

    /// Returns whether any lane waits for a slot that this origin would release.
    func isSlotAwaited(of origin: Origin) -> Bool {
        // An origin that has its maximum of slots is in neither line, so its lanes are checked separately.
        !fresh.isEmpty || !others.isEmpty || origins[origin].map { !$0.lanes.isEmpty } ?? false
    }

    private var hasCommon: Bool { inflight - reservedInUse < limits.common }
    private var hasReserved: Bool { reservedInUse < limits.reserved }
}

// MARK: - Lanes

extension OriginSlots {
    mutating func open(laneOf origin: Origin) {
        origins[origin, default: OriginState()].laneCount += 1
    }

    /// Removes a lane that holds no slot. The origin's state is discarded with its last lane.
    mutating func close(_ lane: Int64, of origin: Origin) {
        leave(lane, of: origin)
        origins[origin]?.laneCount -= 1
        if origins[origin]?.laneCount == 0 { origins[origin] = nil }
    }

    /// Adds a lane to the line for a slot. A lane that already waits keeps its place.
    mutating func join(_ lane: Int64, of origin: Origin) {
        origins[origin]?.lanes.append(lane)
        updateTurn(origin)
    }

    mutating func leave(_ lane: Int64, of origin: Origin) {
        origins[origin]?.lanes.remove(lane)
        updateTurn(origin)
    }

    func isWaiting(_ lane: Int64, of origin: Origin) -> Bool {
        origins[origin]?.lanes.contains(lane) == true
    }

    /// Puts the origin into the line that fits its state, or removes it from both.
    private mutating func updateTurn(_ origin: Origin) {
        let state = origins[origin]
        let isWaiting = state.map { !$0.lanes.isEmpty && $0.inflight < limits.perOrigin } ?? false
        let isFresh = state?.isFresh == true
        if isWaiting && isFresh { fresh.append(origin) } else { fresh.remove(origin) }
        if isWaiting && !isFresh { others.append(origin) } else { others.remove(origin) }
    }
}

// MARK: - Slots

extension OriginSlots {
    /// Gives a slot to the next lane and removes the lane from the line; `nil` if no lane may have a slot.
    mutating func take() -> Int64? {
        guard let origin = nextOrigin(), let lane = origins[origin]!.lanes.removeFirst() else { return nil }
        if !hasCommon {
            origins[origin]!.hasReserved = true
            reservedInUse += 1
        }
        origins[origin]!.inflight += 1
        inflight += 1
        updateTurn(origin)
        return lane
    }

    /// Alternates between both lines while common slots are free. New origins may arrive without end, and must not
    /// delay the others for ever.
    private mutating func nextOrigin() -> Origin? {
        guard hasCommon else { return hasReserved ? fresh.removeFirst() : nil }
        defer { isTurnOfOthers.toggle() }
        if isTurnOfOthers { return others.removeFirst() ?? fresh.removeFirst() }
        return fresh.removeFirst() ?? others.removeFirst()
    }

    /// Releases slots. A reserved slot is released first, because another origin may need it.
    mutating func release(_ count: Int, of origin: Origin) {
        guard count > 0, origins[origin] != nil else { return }
        if origins[origin]!.hasReserved {
            origins[origin]!.hasReserved = false
            reservedInUse -= 1
        }
        origins[origin]!.inflight -= count
        inflight -= count
        updateTurn(origin)
    }

    /// Records whether the origin's last attempt was slow.
    mutating func recordSpeed(of origin: Origin, isSlow: Bool) {
        origins[origin]?.isSlow = isSlow
        updateTurn(origin)
    }
}

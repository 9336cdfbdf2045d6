internal import NetwatchEventLoop

/// Allocates slots to lanes. A slot is the right to send one request.
///
/// Origins take turns, and so do the lanes of an origin, by their weights. An origin therefore gets no more slots by
/// having many requests or many lanes.
///
/// - An origin has at most ``Limits/perOrigin`` slots.
/// - ``Limits/reserved`` slots are reserved for origins that have no slot. Such an origin can therefore start, no
///   matter how long other origins keep their slots. A slow or silent origin gets no reserved slot.
/// - The other slots are the common slots. New, slow and silent origins share a part of them (``UnprovenSlots``), so
///   that the others always remain for prompt origins.
/// - Rate limits may permit no request now, in all lanes together or to one host (``RateLimiters``).
/// - After signs of overload, an origin has fewer slots (``SendWindow``).
/// - Origins that became reachable a moment ago share a limit (``ReconnectRamp``). Each may have one slot in any case,
///   so that no origin waits for another one.
struct OriginSlots: Sendable {
    /// The numbers of slots.
    struct Limits: Hashable, Sendable {
        /// The number of all slots.
        let total: Int
        /// The maximum number of slots of one origin.
        let perOrigin: Int
        /// The number of reserved slots.
        let reserved: Int
        /// The number of slots with which a ramp starts.
        var rampStart = Int.max
        /// The maximum duration of a ramp.
        var rampDuration: Duration = .zero
        /// The factor by which an origin's window shrinks at a sign of overload.
        var windowDecrease = SendWindow.defaultDecrease
        var retries = RetryBudget.Limits()
        var rates: [RateLimit] = []
        /// The weights of hosts other than 1.
        var hostWeights: [String: Int] = [:]

        /// The number of common slots.
        var common: Int { total - reserved }
    }

    struct OriginState: Sendable {
        var standing: OriginStanding
        /// The time of the last change of the standing.
        var standingSince: Moment = .zero
        /// The time of the last attempt that failed because of the path or the server; `nil` if there was none.
        var lastFailure: Moment?
        var inflight = 0
        /// Whether one of the origin's slots is a reserved one. There is at most one, because only an origin without
        /// slots can get it.
        var hasReserved = false
        /// The origin's lanes that wait for a slot, in order, by user.
        var lanes = GroupedQueue<UInt32?, Int64>()
        /// The user of the lane that has joined them last. The origin waits in this user's turn.
        var submitter: UInt32?
        /// The number of the origin's lanes, including those that do not wait.
        var laneCount = 0
        var window: SendWindow
        var retries: RetryBudget

        var common: Int { inflight - (hasReserved ? 1 : 0) }
    }

    private(set) var limits: Limits
    private(set) var inflight = 0
    private var reservedInUse = 0
    private(set) var unproven: UnprovenSlots
    var recent = RecentStandings()
    var origins: [Origin: OriginState] = [:]
    var ramp: ReconnectRamp

    /// The lines in which origins with waiting lanes wait.
    enum Line: Int, CaseIterable {
        /// Prompt origins without slots. They may take a common or a reserved slot.
        case fresh
        /// New origins without slots. They may take a common or a reserved slot.
        case new
        /// Prompt origins with slots.
        case others
        /// New origins with slots.
        case newWithSlots
        /// Slow and doubtful origins.
        case slow
        /// Silent origins without slots.
        case silent
        /// Silent origins with slots.
        case silentWithSlots
        /// Prompt origins with slots that have responded since an outage. The ramp limits them.
        case rampResponding
        /// Other origins with slots since an outage. The ramp limits them.
        case rampSilent

        /// Whether origins in this line may take a reserved slot.
        var mayUseReserve: Bool { self == .fresh || self == .new }
    }

    /// In each line, the users take turns, so that the many silent hosts of one do not delay a host of another.
    private(set) var lines = [GroupedQueue<UInt32?, Origin>](
        repeating: GroupedQueue(),
        count: Line.allCases.count
    )
    /// The index of the line that is next to take a slot.
    private var turn = 0
    /// The time of the current event.
    var now: Moment = .zero
    var rates: RateLimiters
    /// The origins that are in no line because of the rate limit of their host.
    var throttled: [String: [Origin]] = [:]
    /// The times at which these origins return to their lines.
    var openings = Timetable<String, Moment>()

    init(limits: Limits) {
        self.limits = limits
        rates = RateLimiters(limits.rates)
        unproven = UnprovenSlots(common: limits.common, perOrigin: limits.perOrigin)
        ramp = ReconnectRamp(start: limits.rampStart, ceiling: limits.total, duration: limits.rampDuration)
    }

    /// Replaces the numbers of slots, the rates and the weights. Slots in use remain, even if they exceed the new
    /// numbers. ``updateTurn(_:)`` must follow for each origin.
    mutating func use(_ new: Limits) {
        limits = new
        rates.use(new.rates, now: now)
        (throttled, openings) = ([:], Timetable())
        unproven = UnprovenSlots(
            common: new.common,
            perOrigin: new.perOrigin,
            all: unproven.all,
            silent: unproven.silent
        )
        ramp.ceiling = new.total
        for origin in origins.keys { origins[origin]!.window.use(ceiling: new.perOrigin) }
    }

    var isFull: Bool { inflight >= limits.total }

    /// Returns whether any waiting lane could take a slot that this origin releases.
    func isSlotAwaited(of origin: Origin) -> Bool {
        // An origin with the maximum number of slots is in no line, so its own lanes are checked separately.
        if origins[origin].map({ !$0.lanes.isEmpty }) ?? false { return true }
        return Line.allCases.contains { line in
            guard !lines[line.rawValue].isEmpty else { return false }
            // An origin that waits for the ramp needs a slot of an origin in the ramp. An origin that waits for the
            // slot of an unproven origin cannot use the slot of a prompt one.
            let opensReserve = hasReserved || origins[origin]?.hasReserved == true
            return isOpen(line) || line.mayUseReserve && opensReserve || ramp.contains(origin)
                || origins[origin]?.standing != .prompt
        }
    }

    /// Returns the number of slots that an origin may have now.
    func limit(of origin: Origin) -> Int { origins[origin]?.window.limit ?? limits.perOrigin }

    /// Returns whether an origin, or all origins together, have more slots than they may have now. The next slot that the
    /// origin releases must then not be reused.
    func isOverLimit(_ origin: Origin) -> Bool {
        if inflight > limits.total { return true }
        guard let state = origins[origin] else { return false }
        if state.inflight > state.window.limit { return true }
        return ramp.isOverLimit(origin)
    }

    /// The time at which waiting lanes may get slots because the ramp ends; `nil` if no lane waits for that.
    var rampEnd: Moment? {
        let isAwaited = [Line.rampResponding, .rampSilent].contains { !lines[$0.rawValue].isEmpty }
        return isAwaited ? ramp.endsAt : nil
    }

    /// Returns whether an origin of this line may take a common slot if one is free.
    private func isOpen(_ line: Line) -> Bool {
        switch line {
        case .fresh, .others: true
        case .new, .slow: unproven.hasRoom
        case .newWithSlots: unproven.hasRoomForSecond
        case .silent: unproven.hasRoomForSilent
        case .silentWithSlots: unproven.hasRoomForSecondSilent
        case .rampResponding: ramp.hasRoom(hasResponded: true)
        case .rampSilent: unproven.hasRoomForSecond && ramp.hasRoom(hasResponded: false)
        }
    }

    private var hasCommon: Bool { inflight - reservedInUse < limits.common }
    private var hasReserved: Bool { reservedInUse < limits.reserved }
}

// MARK: - Lanes

extension OriginSlots {
    /// Counts a new lane of an origin.
    mutating func open(laneOf origin: Origin) {
        let window = SendWindow(ceiling: limits.perOrigin, decrease: limits.windowDecrease)
        if origins[origin] == nil {
            let retries = RetryBudget(limits: limits.retries)
            let standing = recent.take(origin)
            origins[origin] = OriginState(standing: standing, window: window, retries: retries)
        }
        origins[origin]!.laneCount += 1
    }

    /// Removes a lane, which must not have a slot. The state of an origin is discarded with its last lane.
    mutating func close(_ lane: Int64, of origin: Origin) {
        leave(lane, of: origin)
        origins[origin]?.laneCount -= 1
        guard let state = origins[origin], state.laneCount == 0 else { return }
        changeRamp { $0.leave(origin) }
        recent.remember(state.standing, of: origin)
        origins[origin] = nil
    }

    /// Adds a lane to those that wait for a slot. A lane that already waits keeps its place.
    ///
    /// - Parameter submitter: The user who has submitted the requests of the lane.
    mutating func join(_ lane: Int64, of origin: Origin, for submitter: UInt32? = nil, weight: Int = 1) {
        if !isWaiting(lane, of: origin) { origins[origin]?.submitter = submitter }
        origins[origin]?.lanes.add(lane, to: submitter, weight: weight)
        updateTurn(origin)
    }

    /// Removes a lane from those that wait for a slot.
    mutating func leave(_ lane: Int64, of origin: Origin) {
        origins[origin]?.lanes.remove(lane)
        updateTurn(origin)
    }

    func isWaiting(_ lane: Int64, of origin: Origin) -> Bool {
        origins[origin]?.lanes.contains(lane) == true
    }

    /// Puts an origin into the line that fits its state, or removes it from all lines.
    mutating func updateTurn(_ origin: Origin) {
        let line = throttle(origin) ? nil : line(for: origin)
        for other in Line.allCases {
            if other == line {
                let weight = limits.hostWeights[origin.host] ?? 1
                lines[other.rawValue].add(origin, to: origins[origin]?.submitter, weight: weight)
            } else {
                lines[other.rawValue].remove(origin)
            }
        }
    }

    func line(for origin: Origin) -> Line? {
        guard let state = origins[origin], !state.lanes.isEmpty, state.inflight < state.window.limit else {
            return nil
        }
        let isFirst = state.inflight == 0
        switch state.standing {
        case .prompt where isFirst: return .fresh
        case .new where isFirst: return .new
        case .silent: return isFirst ? .silent : .silentWithSlots
        case .slow where isFirst, .doubtful where isFirst: return .slow
        case .prompt, .new, .slow, .doubtful: break
        }
        if let counted = ramp.counted(of: origin), counted > 0 {
            let isResponding = ramp.hasResponded(origin) && state.standing == .prompt
            return isResponding ? .rampResponding : .rampSilent
        }
        switch state.standing {
        case .prompt: return .others
        case .slow, .doubtful: return .slow
        case .new, .silent: return .newWithSlots
        }
    }
}

// MARK: - Slots

extension OriginSlots {
    /// Gives a slot to the next waiting lane, which then no longer waits. Returns `nil` if no lane may have a slot.
    mutating func take() -> Int64? {
        guard !isFull, rates.opensAt ?? now <= now, let (origin, isReserved) = nextOrigin(),
            let lane = origins[origin]!.lanes.removeFirst()?.key
        else { return nil }
        change(origin) {
            $0.inflight += 1
            if isReserved { $0.hasReserved = true }
        }
        ramp.took(of: origin)
        rates.take(of: origin.host, now: now)
        updateTurn(origin)
        return lane
    }

    /// Removes and returns the next origin, and whether it gets a reserved slot. The lines take turns, so that a
    /// continuous supply of new origins does not block the others.
    private mutating func nextOrigin() -> (Origin, isReserved: Bool)? {
        for offset in lines.indices {
            let index = (turn + offset) % lines.count
            let line = Line(rawValue: index)!
            let isCommon = hasCommon && isOpen(line)
            guard isCommon || (line.mayUseReserve && hasReserved), let origin = takeFirst(of: line) else {
                continue
            }
            turn = index + 1
            return (origin, !isCommon)
        }
        return nil
    }

    /// Removes and returns the first origin of a line whose rate limit permits a request.
    private mutating func takeFirst(of line: Line) -> Origin? {
        while let origin = lines[line.rawValue].removeFirst()?.key {
            if !throttle(origin) { return origin }
        }
        return nil
    }

    /// Releases slots of an origin. Its reserved slot is released first, because another origin may need it.
    mutating func release(_ count: Int, of origin: Origin) {
        guard count > 0, origins[origin] != nil else { return }
        change(origin) {
            $0.hasReserved = false
            $0.inflight -= count
        }
        ramp.released(count, of: origin)
        updateTurn(origin)
    }

    /// Changes an origin, and keeps the numbers of slots in use up to date.
    mutating func change(_ origin: Origin, _ change: (inout OriginState) -> Void) {
        count(origin, -1)
        change(&origins[origin]!)
        count(origin, 1)
    }

    private mutating func count(_ origin: Origin, _ sign: Int) {
        let state = origins[origin]!
        inflight += sign * state.inflight
        reservedInUse += state.hasReserved ? sign : 0
        unproven.add(sign * state.common, state.standing)
    }
}

internal import NetwatchEventLoop

/// The monitor's state of one watched target. Confined to the monitor's thread.
final class WatchedTarget {
    let key: WatchKey
    /// The current verdict and the published status.
    var hold: StatusHold
    /// The name lookups; `nil` for targets that are not names. A separate object, so that watched addresses, of which
    /// there may be thousands, do not need memory for it.
    let name: WatchedName?
    /// The slots of its addresses in the monitor's ``AddressBook``, in the resolver's order.
    var slots: [AddressBook.Slot] = []
    /// When a route that the last verdict depends on expires.
    var expiryDue: ContinuousClock.Instant?
    private(set) var subscribers: [Subscriber]
    /// Whether the target is queued in this turn to be updated.
    var isAffected = false

    struct Subscriber {
        let id: UInt64
        let deliver: @Sendable (PathStatus) -> Void
    }

    init(
        _ key: WatchKey,
        settle: Duration,
        refreshInterval: Duration,
        now: ContinuousClock.Instant,
        subscriber: Subscriber? = nil
    ) {
        self.key = key
        subscribers = subscriber.map { [$0] } ?? []
        hold = StatusHold(target: key.target, settle: settle)
        if case .host(let host) = key.target, case .name(let name) = host.kind {
            self.name = WatchedName(NameResolution(name: name, interval: refreshInterval, now: now))
        } else {
            name = nil
        }
    }

    /// The next time at which this target needs attention without any event.
    var nextDue: ContinuousClock.Instant? {
        earliest(
            earliest(hold.heldUntil, expiryDue),
            earliest(name?.resolution.firstStatusDue, name?.resolution.due)
        )
    }

    func hasExpired(at now: ContinuousClock.Instant) -> Bool {
        expiryDue.map { $0 <= now } ?? false
    }

    func add(_ subscriber: Subscriber) {
        subscribers.append(subscriber)
    }

    func remove(_ id: UInt64) {
        subscribers.removeAll { $0.id == id }
    }

    /// Processes a new verdict. Returns the new status if it differs from the published one.
    func update(_ targetVerdict: TargetVerdict, now: ContinuousClock.Instant) -> PathStatus? {
        if name?.resolution.mayHaveStatus(now: now) == false { return nil }
        if !slots.isEmpty { name?.resolution.note(isReachable: targetVerdict.verdict.isReachable, now: now) }
        return hold.update(targetVerdict, now: now)
    }
}

extension WatchedTarget: Hashable {
    static func == (left: WatchedTarget, right: WatchedTarget) -> Bool {
        left === right
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

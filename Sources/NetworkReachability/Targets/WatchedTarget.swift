internal import NetwatchEventLoop

/// The state of one watched target: its addresses, its status and its subscribers. Confined to the monitor's thread.
final class WatchedTarget {
    let key: WatchKey
    /// The published status, and a change that is held back.
    var hold: StatusHold
    /// The name lookups; `nil` if the target needs none.
    let name: WatchedName?
    /// The slots of the target's addresses in the monitor's ``AddressBook``, in the resolver's order.
    var slots: [AddressBook.Slot] = []
    private(set) var subscribers: [Subscriber]
    /// Whether the target is already in the list of targets to update. Set only during `refreshMarked`.
    var isAffected = false
    /// Whether something is due for the target, and waits for the lookup of its addresses.
    var isOverdue = false

    struct Subscriber {
        let id: UInt64
        let deliver: @Sendable (PathStatus) -> Void
    }

    init(_ key: WatchKey, settle: Duration, name: WatchedName? = nil, subscriber: Subscriber? = nil) {
        self.key = key
        self.name = name
        subscribers = subscriber.map { [$0] } ?? []
        hold = StatusHold(target: key.target, settle: settle)
    }

    /// The next time at which something is due for this target: the end of a hold, a name lookup, or the end of the
    /// first status's wait for the name lookup. `nil` if nothing is due.
    var nextDue: BootInstant? {
        earliest(hold.heldUntil, earliest(name?.resolution.firstStatusDue, name?.resolution.due))
    }

    func add(_ subscriber: Subscriber) {
        subscribers.append(subscriber)
    }

    func remove(_ id: UInt64) {
        subscribers.removeAll { $0.id == id }
    }

    /// Processes a new verdict. Returns the status to publish now, if any.
    func update(_ targetVerdict: TargetVerdict, now: BootInstant) -> PathStatus? {
        if name?.resolution.mayHaveStatus(now: now) == false { return nil }
        if !slots.isEmpty { name?.note(key, isReachable: targetVerdict.verdict.isReachable, now: now) }
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

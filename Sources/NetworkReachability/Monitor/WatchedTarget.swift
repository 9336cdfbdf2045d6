internal import NetwatchEventLoop

/// What a watch is about: the target, and the packets whose way is asked for.
struct WatchKey: Hashable, Sendable {
    let target: PathTarget
    private let sparseOptions: SparseOptions

    init(target: PathTarget, options: PathOptions) {
        self.target = target
        sparseOptions = SparseOptions(options)
    }

    var options: PathOptions { sparseOptions.options }
}

/// What the monitor keeps about one watched target. Confined to the monitor's thread.
final class WatchedTarget {
    let key: WatchKey
    /// What is known of it, and published.
    var hold: StatusHold
    /// The lookups of its name; `nil` for everything that is none. Apart, so that addresses, which are watched by the
    /// thousand, have no room for it.
    let name: WatchedName?
    /// Where its addresses stand in the monitor's ``AddressBook``, in the resolver's order.
    var slots: [AddressBook.Slot] = []
    /// When a route that the last verdict rests on expires.
    var expiryDue: ContinuousClock.Instant?
    private(set) var subscribers: [Subscriber]
    /// Whether it waits, in this turn, to be judged anew.
    var isConcerned = false

    struct Subscriber {
        let id: UInt64
        let deliver: @Sendable (PathStatus) -> Void
    }

    init(
        _ key: WatchKey,
        settle: Duration,
        refreshInterval: Duration = .seconds(30),
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

    /// The next moment at which this target needs attention without any event.
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

    /// Takes a fresh finding. Returns the new status when it differs from the one before.
    func update(_ finding: Finding, now: ContinuousClock.Instant) -> PathStatus? {
        if name?.resolution.mayHaveStatus(now: now) == false { return nil }
        if !slots.isEmpty { name?.resolution.note(isReachable: finding.verdict.isReachable, now: now) }
        return hold.update(finding, now: now)
    }
}

/// The name of a watched target, and the lookup that is under way.
final class WatchedName {
    var resolution: NameResolution
    /// For giving up.
    var lookup: NameResolver.Lookup?

    init(_ resolution: NameResolution) { self.resolution = resolution }
}

extension WatchedTarget: Hashable {
    static func == (left: WatchedTarget, right: WatchedTarget) -> Bool {
        left === right
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

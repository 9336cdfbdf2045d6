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
    /// Orders the targets by their creation: the id of the first subscriber.
    private let number: UInt64
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
        number = subscriber?.id ?? 0
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

extension WatchedTarget: Hashable, Comparable {
    static func == (left: WatchedTarget, right: WatchedTarget) -> Bool {
        left === right
    }

    static func < (left: WatchedTarget, right: WatchedTarget) -> Bool {
        left.number < right.number
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// The lookups of a watched name. All watches of the name share them, whatever their options.
final class WatchedName {
    var resolution: NameResolution
    /// The last lookup that was started; `nil` before the first one. Needed to abandon it.
    var lookup: NameResolver.Lookup?
    /// The targets with this name. Not references, because each target refers to its name.
    private(set) var targets: [WatchKey] = []
    private var unreachable: Set<WatchKey> = []

    init(_ resolution: NameResolution) { self.resolution = resolution }

    var text: String { resolution.name }

    func add(_ target: WatchKey) {
        targets.append(target)
    }

    /// Removes a target. Returns whether none is left.
    func remove(_ target: WatchKey) -> Bool {
        targets.removeAll { $0 == target }
        unreachable.remove(target)
        return targets.isEmpty
    }

    /// Records whether a target is reachable at the addresses of the name. The addresses count as unreachable if one
    /// target is not reachable at them, because the name may soon get others at which it is.
    func note(_ target: WatchKey, isReachable: Bool, now: BootInstant) {
        if isReachable { unreachable.remove(target) } else { unreachable.insert(target) }
        resolution.note(isReachable: unreachable.isEmpty, now: now)
    }
}

/// The key of a watched target: the target and its path options. Watches with equal keys share one state.
struct WatchKey: Hashable, Sendable {
    let target: PathTarget
    private let sparseOptions: SparseOptions

    init(target: PathTarget, options: PathOptions) {
        self.target = target
        sparseOptions = SparseOptions(options)
    }

    var options: PathOptions { sparseOptions.options }

    /// The name whose addresses must be looked up; `nil` if the addresses are known.
    var name: String? {
        guard case .host(let host) = target, host.knownAddresses == nil, case .name(let name) = host.kind
        else {
            return nil
        }
        return name
    }
}

/// A FIFO queue of statuses that will be delivered to subscribers.
///
/// A class, because a subscriber that is called during ``deliver()`` may cause further statuses.
final class Outbox {
    private typealias Entry = (WatchedTarget.Subscriber, PathStatus)

    /// The maximum number of entries whose memory is kept for later deliveries: 64.
    private static let maximumKept = 64

    private var entries: [Entry] = []
    /// The entries that are being delivered. The two arrays change places, so that both keep their memory.
    private var current: [Entry] = []
    private var isDelivering = false

    func put(_ status: PathStatus, for subscriber: WatchedTarget.Subscriber) {
        entries.append((subscriber, status))
    }

    /// Delivers all statuses, including those that are added during the delivery.
    ///
    /// If a subscriber causes a nested call, that call has no effect. The outer call delivers the new statuses.
    func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        while !entries.isEmpty {
            swap(&entries, &current)
            for (subscriber, status) in current { subscriber.deliver(status) }
            current.removeAll(keepingCapacity: current.count <= Self.maximumKept)
        }
        isDelivering = false
    }
}

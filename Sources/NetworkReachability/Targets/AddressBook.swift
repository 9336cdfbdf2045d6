internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The addresses of all watched targets, with their last verdicts and their watchers.
///
/// The watchers of an address are the targets that have it. Targets with the same address and options share one record.
/// The port is one of the options only while a policy rule depends on it; see ``distinguishPorts(_:of:)``.
///
/// The book also determines which addresses a kernel notification may affect. It marks them, and ``MonitorCore`` looks
/// up the marked addresses.
///
/// Confined to the monitor's thread.
struct AddressBook {
    /// The index of the record of an address and its options.
    typealias Slot = Int32

    fileprivate struct Record {
        let key: Key
        /// The last verdict; `nil` until the first lookup.
        var verdict: PathStatus.Verdict?
        var interface: UInt32 = 0
        var dependsOnOtherInterfaces = false
        /// The first target that has this address, usually the only one; `nil` if the slot is free.
        var watcher: WatchedTarget?
        var otherWatchers: [WatchedTarget] = []
    }

    /// Whether an address must be looked up, and how soon.
    ///
    /// Stored separately from the records, so that marking all addresses reads and writes little memory.
    fileprivate enum Mark {
        /// The slot is free.
        case absent
        case none
        /// Must be looked up to confirm the verdict, usually after all urgent addresses.
        case deferred
        /// Must be looked up because the path may have changed, or because the address is new.
        case urgent
    }

    fileprivate struct Key: Hashable {
        let address: IPAddress
        let options: SparseOptions
    }

    /// The records by slot. The slots of removed addresses are reused.
    // The elements are not optional, because reading a part of an optional record would copy the whole record.
    private var records: [Record] = []
    private var marks: [Mark] = []
    private var freeSlots: [Slot] = []
    private var slots: [Key: Slot] = [:]
    private var order = AddressOrder()
    private var urgent = SlotQueue()
    private var deferred = SlotQueue()
    private var turn = 0
    private var lifetimes = RouteLifetimes()
    private let ignoresLifetimes: Bool
    /// Whether addresses with different ports have different records.
    private var distinguishesPorts = true

    /// - Parameter ignoresLifetimes: See ``MonitorFaults/ignoresLifetimes``.
    init(ignoresLifetimes: Bool = false) {
        self.ignoresLifetimes = ignoresLifetimes
    }

    // MARK: Watchers

    /// Replaces the addresses of a target. Addresses that are new in the book are marked as urgent. Addresses that no
    /// target has any more are removed from the book.
    mutating func assign(_ addresses: [IPAddress], to target: WatchedTarget) {
        let before = target.slots
        let options = options(of: target)
        target.slots = addresses.map { add(Key(address: $0, options: options), target) }
        for slot in before { remove(target, from: slot) }
    }

    private func options(of target: WatchedTarget) -> SparseOptions {
        var options = target.key.options
        if !distinguishesPorts { options.port = nil }
        return SparseOptions(options)
    }

    /// Sets whether the paths to addresses may depend on the port. If this changes, the addresses of targets with a
    /// port move to other records, and must be looked up again.
    ///
    /// - Parameter targets: All targets.
    mutating func distinguishPorts(
        _ distinguishesPorts: Bool,
        of targets: some Sequence<WatchedTarget>
    ) -> Moves {
        guard distinguishesPorts != self.distinguishesPorts else { return Moves() }
        self.distinguishesPorts = distinguishesPorts
        var moves = Moves()
        // Thousands of targets may leave the same record, so they are removed together.
        var leaving: [Slot: Set<WatchedTarget>] = [:]
        for target in targets where target.key.options.port != nil && !target.slots.isEmpty {
            let options = options(of: target)
            target.slots = target.slots.map { old in
                let slot = add(Key(address: address(at: old), options: options), target)
                inherit(old, slot)
                leaving[old, default: []].insert(target)
                if let verdict = verdict(at: old) { moves.verdicts[slot, default: []].append(verdict) }
                return slot
            }
            moves.targets.append(target)
        }
        for (slot, targets) in leaving where records[Int(slot)].remove(targets) { free(slot) }
        return moves
    }

    /// The effect of ``distinguishPorts(_:of:)``.
    struct Moves {
        /// The targets whose addresses have moved. Their statuses must be updated after the lookups, even if these
        /// change no verdict.
        fileprivate(set) var targets: [WatchedTarget] = []
        /// For each slot to which addresses have moved, the last verdicts at the slots that they have left.
        fileprivate(set) var verdicts: [Slot: [PathStatus.Verdict]] = [:]
    }

    /// Marks a slot, and gives a new one the last verdict of another, so that its target keeps its status until the
    /// lookup.
    private mutating func inherit(_ old: Slot, _ new: Slot) {
        mark(new)
        guard records[Int(new)].verdict == nil else { return }
        records[Int(new)].inherit(records[Int(old)])
        lifetimes.copy(old, to: new)
    }

    private mutating func add(_ key: Key, _ target: WatchedTarget) -> Slot {
        if let slot = slots[key] {
            records[Int(slot)].otherWatchers.append(target)
            return slot
        }
        let slot = freeSlots.popLast() ?? Slot(records.count)
        let record = Record(key: key, watcher: target)
        if Int(slot) == records.count { records.append(record) } else { records[Int(slot)] = record }
        slots[key] = slot
        order.insert(key.address, slot)
        urgent.append(slot)
        if Int(slot) == marks.count { marks.append(.urgent) } else { marks[Int(slot)] = .urgent }
        return slot
    }

    private mutating func remove(_ target: WatchedTarget, from slot: Slot) {
        let isLast = records[Int(slot)].remove(target)
        if isLast { free(slot) }
    }

    private mutating func free(_ slot: Slot) {
        slots[records[Int(slot)].key] = nil
        records[Int(slot)].verdict = nil
        records[Int(slot)].watcher = nil
        marks[Int(slot)] = .absent
        lifetimes.remove(slot)
        freeSlots.append(slot)
        order.removeOne()
        if order.shouldRebuild { rebuildOrder() }
    }

    private mutating func rebuildOrder() {
        order = AddressOrder()
        for (key, slot) in slots { order.insert(key.address, slot) }
    }

    func forEachWatcher(of slot: Slot, _ body: (WatchedTarget) -> Void) {
        guard let watcher = records[Int(slot)].watcher else { return }
        body(watcher)
        for target in records[Int(slot)].otherWatchers { body(target) }
    }

    /// All addresses. An address that is watched with several sets of options appears once for each.
    var addresses: [IPAddress] {
        slots.keys.map(\.address)
    }

    func address(at slot: Slot) -> IPAddress { records[Int(slot)].key.address }

    // MARK: Verdicts

    func verdict(at slot: Slot) -> PathStatus.Verdict? {
        records[Int(slot)].verdict
    }

    /// Stores the verdict of a lookup. Returns whether it has changed, so that the targets of the address must be
    /// updated.
    mutating func update(_ slot: Slot, _ addressVerdict: AddressVerdict, now: BootInstant) -> Bool {
        guard marks[Int(slot)] != .absent else { return false }
        let isChanged = records[Int(slot)].update(addressVerdict)
        if address(at: slot).family == .ipv6, !ignoresLifetimes {
            mark(lifetimes.note(slot, addressVerdict, isChanged: isChanged, now: now))
        }
        return isChanged
    }

    // MARK: Lifetimes

    /// The time when ``markRenewable(now:)`` must be called; `nil` if no path can change without a notification.
    var renewableDue: BootInstant? { lifetimes.due }

    /// Marks the addresses whose path may have changed without a notification, because their routes have lifetimes.
    /// Returns whether there are any.
    mutating func markRenewable(now: BootInstant) -> Bool {
        let slots = lifetimes.takeDue(at: now)
        mark(slots)
        return !slots.isEmpty
    }

    // MARK: Pending lookups

    var hasMarks: Bool { !urgent.isEmpty || !deferred.isEmpty }

    /// An address that must be looked up.
    struct Marked {
        let slot: Slot
        let address: IPAddress
        let options: SparseOptions
        /// Whether the lookup only confirms the verdict: neither a notification nor the lifetime of a route suggests
        /// that it has changed.
        let isConfirmation: Bool
    }

    /// Removes marks, and returns their addresses in the order of marking.
    ///
    /// Each call returns either urgent or deferred addresses. While there are both kinds, every fourth call returns
    /// deferred ones, so that a storm of urgent ones does not block the others forever.
    mutating func takeMarked(atMost limit: Int) -> [Marked] {
        if !urgent.isEmpty, !deferred.isEmpty { turn += 1 }
        let isUrgent = deferred.isEmpty || !urgent.isEmpty && turn % 4 != 0
        let taken = isUrgent ? urgent.take(limit) : deferred.take(limit)
        return taken.compactMap { slot in
            let mark = marks[Int(slot)]
            guard mark != .none, mark != .absent else { return nil }
            marks[Int(slot)] = .none
            return Marked(
                slot: slot,
                address: records[Int(slot)].key.address,
                options: records[Int(slot)].key.options,
                isConfirmation: mark == .deferred && !lifetimes.contains(slot)
            )
        }
    }

    /// Returns whether any of these addresses must still be looked up.
    func isMarked(_ slots: [Slot]) -> Bool {
        slots.contains { marks[Int($0)] != .none }
    }

    /// Returns whether the path of an address may have changed since its last lookup.
    func isUrgent(_ slot: Slot) -> Bool { marks[Int(slot)] == .urgent }

    /// Marks all addresses.
    ///
    /// - Parameter isDeferred: Whether the lookups only confirm the verdicts, so that urgent addresses go first.
    ///   Default: `false`, because the paths may have changed.
    mutating func markEverything(deferred isDeferred: Bool = false) {
        let mark: Mark = isDeferred ? .deferred : .urgent
        for index in records.indices { self.mark(Slot(index), mark) }
    }

    mutating func mark(_ slots: [Slot]) {
        for slot in slots { mark(slot) }
    }

    /// Marks the addresses that an event may affect:
    /// - a route: the addresses that it covers;
    /// - a link: the addresses whose path uses the interface or may use it now;
    /// - an address of an interface: the same as for the link, and the addresses that its prefix covers;
    /// - a rule, a next hop, a setting or a malformed notification: all addresses.
    ///
    /// Only route events come by the thousand, so only they use the sorted index. For a link all addresses are scanned,
    /// at a few nanoseconds each.
    mutating func mark(_ event: NetlinkEvent) {
        switch event {
        case .route(let prefix):
            for slot in order.slots(within: prefix) { markAffected(slot) }
        case .link(let index):
            markWhere { $0.mayDepend(on: index) }
        case .address(let index, let prefix):
            markWhere { $0.mayDepend(on: index) || prefix.contains($0.key.address) }
        case .rule, .nextHop, .setting, .malformed:
            markEverything()
        case .irrelevant:
            break
        }
    }

    private mutating func markWhere(_ isAffected: (Record) -> Bool) {
        for index in records.indices where marks[index] != .absent && isAffected(records[index]) {
            markAffected(Slot(index))
        }
    }

    private mutating func markAffected(_ slot: Slot) {
        mark(slot)
        lifetimes.noteEvent(slot)
    }

    private mutating func mark(_ slot: Slot, _ mark: Mark = .urgent) {
        let present = marks[Int(slot)]
        guard present != .absent, present != mark, present != .urgent else { return }
        marks[Int(slot)] = mark
        if mark == .urgent { urgent.append(slot) } else { deferred.append(slot) }
    }
}

extension AddressBook.Record {
    /// Stores a verdict. Returns whether it differs from the previous one.
    ///
    /// An equal verdict does not replace the previous one, so that the record and the statuses share one copy.
    fileprivate mutating func update(_ addressVerdict: AddressVerdict) -> Bool {
        interface = addressVerdict.interface
        dependsOnOtherInterfaces = addressVerdict.dependsOnOtherInterfaces
        if verdict == addressVerdict.verdict { return false }
        verdict = addressVerdict.verdict
        return true
    }

    fileprivate mutating func inherit(_ other: Self) {
        verdict = other.verdict
        interface = other.interface
        dependsOnOtherInterfaces = other.dependsOnOtherInterfaces
    }

    /// Removes a watcher. Returns whether no watcher is left.
    fileprivate mutating func remove(_ target: WatchedTarget) -> Bool {
        if let index = otherWatchers.firstIndex(where: { $0 === target }) {
            otherWatchers.remove(at: index)
            return false
        }
        guard watcher === target else { return false }
        guard let next = otherWatchers.popLast() else { return true }
        watcher = next
        return false
    }

    /// Removes watchers. Returns whether no watcher is left.
    fileprivate mutating func remove(_ targets: Set<WatchedTarget>) -> Bool {
        otherWatchers.removeAll { targets.contains($0) }
        guard let watcher, targets.contains(watcher) else { return false }
        return remove(watcher)
    }

    /// Returns whether a change of the interface may change the verdict.
    ///
    /// True for the interface of the path. True for every interface if the address has no path, if its verdict depends
    /// on several interfaces, or if its options name an interface or a source address.
    fileprivate func mayDepend(on interface: UInt32) -> Bool {
        guard let verdict else { return true }
        return self.interface == interface || dependsOnOtherInterfaces || !verdict.isReachable
            || key.options.dependOnInterfaces
    }
}

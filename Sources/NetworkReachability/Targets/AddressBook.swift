internal import NetwatchEventLoop
internal import NetwatchNetlink

/// All addresses to look up, each once, with their last verdicts and watchers. Determines which addresses a kernel
/// notification may affect.
///
/// Confined to the monitor's thread.
struct AddressBook {
    /// The index of an address and its options.
    typealias Slot = Int32

    fileprivate struct Record {
        let key: Key
        /// The last verdict; `nil` until the first lookup.
        var verdict: PathStatus.Verdict?
        var expiry: ContinuousClock.Instant?
        var interface: UInt32 = 0
        var isMultipath = false
        /// The first watcher, usually the only one; `nil` if the slot is free.
        var watcher: WatchedTarget?
        var otherWatchers: [WatchedTarget] = []
    }

    /// Whether an address must be looked up, and how soon.
    ///
    /// Stored separately from the records, so that marking all addresses does not touch the records.
    fileprivate enum Mark {
        /// The slot is free.
        case absent
        case none
        /// Look up when no urgent address is left, to confirm the verdict.
        case deferred
        case urgent
    }

    fileprivate struct Key: Hashable {
        let address: IPAddress
        let options: SparseOptions
    }

    /// The records. Slots of removed addresses are reused.
    // Not optional: reading a part of an optional record would copy all of it.
    private var records: [Record] = []
    private var marks: [Mark] = []
    private var freeSlots: [Slot] = []
    private var slots: [Key: Slot] = [:]
    private var order = AddressOrder()
    private var urgent = SlotQueue()
    private var deferred = SlotQueue()
    private var turn = 0

    // MARK: Watchers

    /// Replaces the addresses of a target.
    mutating func assign(_ addresses: [IPAddress], to target: WatchedTarget) {
        let before = target.slots
        let options = SparseOptions(target.key.options)
        target.slots = addresses.map { add(Key(address: $0, options: options), target) }
        for slot in before { remove(target, from: slot) }
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
        records[Int(slot)].expiry = nil
        records[Int(slot)].watcher = nil
        marks[Int(slot)] = .absent
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

    /// All addresses. An address with several sets of options appears several times.
    var addresses: [IPAddress] {
        slots.keys.map(\.address)
    }

    func address(at slot: Slot) -> IPAddress { records[Int(slot)].key.address }

    // MARK: Verdicts

    func verdict(at slot: Slot) -> PathStatus.Verdict? {
        records[Int(slot)].verdict
    }

    /// When the verdict expires without any event; `nil` if it does not.
    func expiry(at slot: Slot) -> ContinuousClock.Instant? {
        records[Int(slot)].expiry
    }

    /// Stores a verdict. Returns whether the watchers must be notified.
    mutating func update(_ slot: Slot, _ addressVerdict: AddressVerdict, now: ContinuousClock.Instant) -> Bool
    {
        guard marks[Int(slot)] != .absent else { return false }
        // Slightly later than the kernel says.
        let expiry =
            addressVerdict.lifetime.map { now + $0 + Self.expiryMargin } ?? upcomingExpiry(at: slot, now)
        return records[Int(slot)].update(addressVerdict, expiry: expiry) || expiry != nil
    }

    /// The kernel rounds the remaining lifetime down to 10 ms, counts in ticks of up to 10 ms, and drops a route one
    /// tick after it expires.
    private static let expiryMargin: Duration = .milliseconds(50)

    /// In the last 10 ms of its lifetime, the kernel reports a route as if it never expired.
    private func upcomingExpiry(
        at slot: Slot,
        _ now: ContinuousClock.Instant
    ) -> ContinuousClock.Instant? {
        records[Int(slot)].expiry.flatMap { $0 > now ? $0 : nil }
    }

    // MARK: Pending lookups

    var hasMarks: Bool { !urgent.isEmpty || !deferred.isEmpty }

    /// An address that must be looked up.
    struct Marked {
        let slot: Slot
        let address: IPAddress
        let options: SparseOptions
    }

    /// Removes and returns addresses to look up, in the order of marking. Urgent ones come first, except in every
    /// fourth call, so that a storm of urgent ones does not block the others forever.
    mutating func takeMarked(atMost limit: Int) -> [Marked] {
        if !urgent.isEmpty, !deferred.isEmpty { turn += 1 }
        let isUrgent = deferred.isEmpty || !urgent.isEmpty && turn % 4 != 0
        let taken = isUrgent ? urgent.take(limit) : deferred.take(limit)
        return taken.compactMap { slot in
            guard marks[Int(slot)] != .none, marks[Int(slot)] != .absent else { return nil }
            marks[Int(slot)] = .none
            return Marked(
                slot: slot,
                address: records[Int(slot)].key.address,
                options: records[Int(slot)].key.options
            )
        }
    }

    /// Whether any of these addresses must be looked up.
    func isMarked(_ slots: [Slot]) -> Bool {
        slots.contains { marks[Int($0)] != .none }
    }

    /// Marks all addresses: urgently because they may have changed, or deferred to confirm them.
    mutating func markEverything(deferred isDeferred: Bool = false) {
        let mark: Mark = isDeferred ? .deferred : .urgent
        for index in records.indices { self.mark(Slot(index), mark) }
    }

    mutating func mark(_ slots: [Slot]) {
        for slot in slots { mark(slot) }
    }

    /// Marks the addresses that an event may affect. For a route: the addresses that it covers. For an interface: the
    /// addresses reached over it, or possibly reached over it now. For anything else: all addresses.
    ///
    /// The addresses of an interface are found by a scan, at a few nanoseconds each. Only route events come by the
    /// thousand, so only they use the sorted index.
    mutating func mark(_ event: NetlinkEvent) {
        switch event {
        case .route(let prefix):
            for slot in order.slots(within: prefix) { mark(slot) }
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
            mark(Slot(index))
        }
    }

    private mutating func mark(_ slot: Slot, _ mark: Mark = .urgent) {
        let present = marks[Int(slot)]
        guard present != .absent, present != mark, present != .urgent else { return }
        marks[Int(slot)] = mark
        if mark == .urgent { urgent.append(slot) } else { deferred.append(slot) }
    }
}

extension AddressBook.Record {
    /// Stores a verdict. Returns whether the verdict changed.
    ///
    /// An equal verdict is not replaced, because statuses share it.
    fileprivate mutating func update(_ addressVerdict: AddressVerdict, expiry: ContinuousClock.Instant?)
        -> Bool
    {
        self.expiry = expiry
        interface = addressVerdict.interface
        isMultipath = addressVerdict.isMultipath
        if verdict == addressVerdict.verdict { return false }
        verdict = addressVerdict.verdict
        return true
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

    /// Whether a change of the interface may change the path. Any interface may provide a path to an address that has
    /// none.
    fileprivate func mayDepend(on interface: UInt32) -> Bool {
        guard let verdict else { return true }
        return self.interface == interface || isMultipath || !verdict.isReachable || !key.options.areDefaults
    }
}

/// A queue of slots to look up.
private struct SlotQueue {
    private var slots: [AddressBook.Slot] = []
    /// The index of the first slot that has not been taken.
    private var first = 0

    var isEmpty: Bool { first == slots.count }

    mutating func append(_ slot: AddressBook.Slot) {
        slots.append(slot)
    }

    mutating func take(_ limit: Int) -> ArraySlice<AddressBook.Slot> {
        let taken = slots[first...].prefix(limit)
        first += taken.count
        if first > slots.count / 2 {
            slots.removeFirst(first)
            first = 0
        }
        return taken
    }
}

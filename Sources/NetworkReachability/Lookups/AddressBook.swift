internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Every address that is looked up, each once, with what is known of it and who wants to know; and which of
/// them an announcement of the kernel may concern.
///
/// Confined to the monitor's thread.
struct AddressBook {
    /// Names an address together with its options.
    typealias Slot = Int32

    fileprivate struct Record {
        let key: Key
        /// `nil` until it has been looked up.
        var verdict: PathStatus.Verdict?
        var expiry: ContinuousClock.Instant?
        var interface: UInt32 = 0
        var isMultipath = false
        /// Who wants to know: at least one, as a rule no more; `nil` in a hole.
        var watcher: WatchedTarget?
        var otherWatchers: [WatchedTarget] = []
    }

    /// Whether an address has to be looked up, and how soon.
    ///
    /// Kept apart from the records: marking all of them touches nothing else.
    fileprivate enum Mark {
        /// There is no address.
        case absent
        case none
        /// To make sure, when nothing urgent is left.
        case patient
        case urgent
    }

    fileprivate struct Key: Hashable {
        let address: IPAddress
        let options: SparseOptions
    }

    /// With holes where addresses were given up, which are used again.
    // Not optional: looking at a part of an optional record would copy all of it.
    private var records: [Record] = []
    private var marks: [Mark] = []
    private var holes: [Slot] = []
    private var slots: [Key: Slot] = [:]
    private var order = AddressOrder()
    private var urgent = SlotQueue()
    private var patient = SlotQueue()
    private var turn = 0

    /// How many addresses there are.
    var count: Int { slots.count }

    // MARK: Who watches what

    /// Has a target rest on these addresses instead of those before.
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
        let slot = holes.popLast() ?? Slot(records.count)
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
        if isLast { giveUp(slot) }
    }

    private mutating func giveUp(_ slot: Slot) {
        slots[records[Int(slot)].key] = nil
        records[Int(slot)].verdict = nil
        records[Int(slot)].expiry = nil
        records[Int(slot)].watcher = nil
        marks[Int(slot)] = .absent
        holes.append(slot)
        order.removeOne()
        if order.isMostlyStale { putInOrder() }
    }

    private mutating func putInOrder() {
        order = AddressOrder()
        for (key, slot) in slots { order.insert(key.address, slot) }
    }

    func forEachWatcher(of slot: Slot, _ body: (WatchedTarget) -> Void) {
        guard let watcher = records[Int(slot)].watcher else { return }
        body(watcher)
        for target in records[Int(slot)].otherWatchers { body(target) }
    }

    /// Every address, some of them twice.
    var addresses: [IPAddress] {
        slots.keys.map(\.address)
    }

    func address(at slot: Slot) -> IPAddress { records[Int(slot)].key.address }

    // MARK: What is known

    func verdict(at slot: Slot) -> PathStatus.Verdict? {
        records[Int(slot)].verdict
    }

    /// When what is known ends to be valid without any event; `nil` when it does not.
    func expiry(at slot: Slot) -> ContinuousClock.Instant? {
        records[Int(slot)].expiry
    }

    /// Takes what was found out. Returns whether those who watch must hear of it.
    mutating func update(_ slot: Slot, _ judgement: Judgement, now: ContinuousClock.Instant) -> Bool {
        guard marks[Int(slot)] != .absent else { return false }
        // A little later than the kernel says.
        let expiry = judgement.lifetime.map { now + $0 + Self.expiryMargin } ?? upcomingExpiry(at: slot, now)
        return records[Int(slot)].update(judgement, expiry: expiry) || expiry != nil
    }

    /// The kernel rounds what is left down to 10 ms, counts in ticks of up to 10 ms, and drops a route one tick
    /// after its time.
    private static let expiryMargin: Duration = .milliseconds(50)

    /// In its last 10 ms a route looks as if it would never expire.
    private func upcomingExpiry(
        at slot: Slot,
        _ now: ContinuousClock.Instant
    ) -> ContinuousClock.Instant? {
        records[Int(slot)].expiry.flatMap { $0 > now ? $0 : nil }
    }

    // MARK: What has to be looked up

    var hasMarks: Bool { !urgent.isEmpty || !patient.isEmpty }

    /// An address that has to be looked up.
    struct Marked {
        let slot: Slot
        let address: IPAddress
        let options: SparseOptions
    }

    /// Takes out what has to be looked up, what was marked first first: what is urgent before what can wait, but
    /// for every fourth time, so that a storm of the former does not keep the latter for ever.
    mutating func takeMarked(atMost limit: Int) -> [Marked] {
        if !urgent.isEmpty, !patient.isEmpty { turn += 1 }
        let isUrgent = patient.isEmpty || !urgent.isEmpty && turn % 4 != 0
        let taken = isUrgent ? urgent.take(limit) : patient.take(limit)
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

    /// Whether any of these has to be looked up.
    func isMarked(_ slots: [Slot]) -> Bool {
        slots.contains { marks[Int($0)] != .none }
    }

    /// Marks all: at once, because they may have changed; or patiently, to make sure that they have not.
    mutating func markEverything(patiently isPatient: Bool = false) {
        let mark: Mark = isPatient ? .patient : .urgent
        for index in records.indices { self.mark(Slot(index), mark) }
    }

    mutating func mark(_ slots: [Slot]) {
        for slot in slots { mark(slot) }
    }

    /// Marks what an announcement may concern: a route, the addresses it covers; an interface, whatever
    /// leads over it or might do so now; anything else, all.
    ///
    /// The addresses of an interface are found by looking at each, a few nanoseconds apiece. Only routes come
    /// by the thousand, and only they are looked for.
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

    private mutating func markWhere(_ isConcerned: (Record) -> Bool) {
        for index in records.indices where marks[index] != .absent && isConcerned(records[index]) {
            mark(Slot(index))
        }
    }

    private mutating func mark(_ slot: Slot, _ mark: Mark = .urgent) {
        let present = marks[Int(slot)]
        guard present != .absent, present != mark, present != .urgent else { return }
        marks[Int(slot)] = mark
        if mark == .urgent { urgent.append(slot) } else { patient.append(slot) }
    }
}

extension AddressBook.Record {
    /// Takes what was found out. Returns whether the verdict is another one.
    ///
    /// One that is the same is not replaced: statuses share it.
    fileprivate mutating func update(_ judgement: Judgement, expiry: ContinuousClock.Instant?) -> Bool {
        self.expiry = expiry
        interface = judgement.interface
        isMultipath = judgement.isMultipath
        if verdict == judgement.verdict { return false }
        verdict = judgement.verdict
        return true
    }

    /// Returns whether nobody is left.
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

    /// Whether the way may be another after a change of an interface. It may be a new one wherever there is
    /// none now.
    fileprivate func mayDepend(on interface: UInt32) -> Bool {
        guard let verdict else { return true }
        return self.interface == interface || isMultipath || !verdict.isReachable || !key.options.areDefaults
    }
}

/// Slots that wait their turn.
private struct SlotQueue {
    private var slots: [AddressBook.Slot] = []
    /// Those before it have been taken out.
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

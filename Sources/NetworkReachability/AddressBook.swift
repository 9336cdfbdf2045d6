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
        var judgement: Judgement?
        var expiry: ContinuousClock.Instant?
        var watchers: [WatchedTarget]
        var isDirty = true
    }

    fileprivate struct Key: Hashable {
        let address: IPAddress
        let options: PathOptions
    }

    /// With holes where addresses were given up, which are used again.
    private var records: [Record?] = []
    private var holes: [Slot] = []
    private var slots: [Key: Slot] = [:]
    private var order = AddressOrder()
    private var dirty: [Slot] = []

    /// How many addresses there are.
    var count: Int { slots.count }

    // MARK: Who watches what

    /// Has a target rest on these addresses instead of those before.
    mutating func assign(_ addresses: [IPAddress], to target: WatchedTarget) {
        let before = target.slots
        target.slots = addresses.map { add(Key(address: $0, options: target.key.options), target) }
        for slot in before { remove(target, from: slot) }
    }

    private mutating func add(_ key: Key, _ target: WatchedTarget) -> Slot {
        if let slot = slots[key] {
            records[Int(slot)]!.watchers.append(target)
            return slot
        }
        let slot = holes.popLast() ?? Slot(records.count)
        let record = Record(key: key, watchers: [target])
        if Int(slot) == records.count { records.append(record) } else { records[Int(slot)] = record }
        slots[key] = slot
        order.insert(key.address, slot)
        dirty.append(slot)
        return slot
    }

    private mutating func remove(_ target: WatchedTarget, from slot: Slot) {
        let index = records[Int(slot)]!.watchers.firstIndex { $0 === target }
        if let index { records[Int(slot)]!.watchers.remove(at: index) }
        guard let record = records[Int(slot)], record.watchers.isEmpty else { return }
        slots[record.key] = nil
        records[Int(slot)] = nil
        holes.append(slot)
        order.removeOne()
        if order.isMostlyStale { putInOrder() }
    }

    private mutating func putInOrder() {
        order = AddressOrder()
        for (key, slot) in slots { order.insert(key.address, slot) }
    }

    func watchers(of slot: Slot) -> [WatchedTarget] {
        records[Int(slot)]?.watchers ?? []
    }

    /// Every address, some of them twice.
    var addresses: [IPAddress] {
        records.compactMap { $0?.key.address }
    }

    // MARK: What is known

    func judgement(at slot: Slot) -> Judgement? {
        records[Int(slot)]?.judgement
    }

    /// When what is known ends to be valid without any event; `nil` when it does not.
    func expiry(at slot: Slot) -> ContinuousClock.Instant? {
        records[Int(slot)]?.expiry
    }

    /// Takes what was found out. Returns whether those who watch must hear of it.
    mutating func update(_ slot: Slot, _ judgement: Judgement, now: ContinuousClock.Instant) -> Bool {
        guard records[Int(slot)] != nil else { return false }
        let isNew = records[Int(slot)]!.judgement?.verdict != judgement.verdict
        records[Int(slot)]!.judgement = judgement
        let expiry = judgement.lifetime.map { now + $0 + Self.expiryMargin } ?? upcomingExpiry(at: slot, now)
        records[Int(slot)]!.expiry = expiry
        return isNew || expiry != nil
    }

    /// The kernel rounds what is left down to 10 ms, counts in ticks of up to 10 ms, and drops a route one tick
    /// after its time.
    private static let expiryMargin: Duration = .milliseconds(50)

    /// In its last 10 ms a route looks as if it would never expire.
    private func upcomingExpiry(
        at slot: Slot,
        _ now: ContinuousClock.Instant
    ) -> ContinuousClock.Instant? {
        records[Int(slot)]?.expiry.flatMap { $0 > now ? $0 : nil }
    }

    // MARK: What has to be looked up

    var hasMarks: Bool { !dirty.isEmpty }

    /// Takes out everything that has to be looked up.
    mutating func takeDirty() -> [(slot: Slot, address: IPAddress, options: PathOptions)] {
        defer { dirty.removeAll(keepingCapacity: true) }
        return dirty.compactMap { slot in
            guard let key = records[Int(slot)]?.key, records[Int(slot)]!.isDirty else { return nil }
            records[Int(slot)]!.isDirty = false
            return (slot, key.address, key.options)
        }
    }

    mutating func markEverything() {
        markWhere { _ in true }
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
        for index in records.indices where records[index].map(isConcerned) == true { mark(Slot(index)) }
    }

    private mutating func mark(_ slot: Slot) {
        guard records[Int(slot)]?.isDirty == false else { return }
        records[Int(slot)]!.isDirty = true
        dirty.append(slot)
    }
}

extension AddressBook.Record {
    /// Whether the way may be another after a change of an interface. It may be a new one wherever there is
    /// none now.
    fileprivate func mayDepend(on interface: UInt32) -> Bool {
        guard let judgement else { return true }
        return judgement.interface == interface || judgement.isMultipath || !judgement.verdict.isReachable
            || key.options != PathOptions()
    }
}

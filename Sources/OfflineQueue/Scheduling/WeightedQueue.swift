internal import NetwatchEventLoop

/// A queue of unique keys that take turns by weight: a key of weight 3 gets three turns where a key of weight 1 gets
/// one. Among keys of equal weight it is a FIFO queue.
///
/// Each key gets a virtual finish time when it joins, and the key with the earliest one is next. The virtual time is
/// the virtual finish time of the last turn (self-clocked fair queuing; Golestani, 1994). A key that was absent for a
/// moment, for example because its last turn is still being handled, keeps the turns of one round. A longer absence
/// gives it no advantage.
///
/// An operation takes O(log keys), except that finish times of keys with a weight are dropped from time to time.
struct WeightedQueue<Key: Hashable & Sendable>: Sendable {
    /// The share of a round that a turn of weight 1 takes. It is divisible by most weights, which avoids rounding.
    private static var round: Int64 { 720_720 }

    /// The numbers of the waiting keys by their finish times. Of equal times, the key that joined first is next.
    private var order = Timetable<Int, Moment>()
    private var tickets: [Key: Int] = [:]
    private var keys: [Int: (key: Key, finish: Int64, weight: Int)] = [:]
    private var lastTicket = 0
    private var time: Int64 = 0
    /// The last finish times of keys with a weight of more than 1.
    private var finishes: [Key: Int64] = [:]

    var isEmpty: Bool { tickets.isEmpty }

    func contains(_ key: Key) -> Bool { tickets[key] != nil }

    /// Adds a key. A key that is already in the queue keeps its place, unless its weight has changed. Its place is then
    /// the one that it would have if it had joined with the new weight.
    mutating func append(_ key: Key, weight: Int = 1) {
        if let ticket = tickets[key] { return setWeight(weight, ofTicket: ticket) }
        lastTicket += 1
        tickets[key] = lastTicket
        place(lastTicket, of: key, finish: finish(of: key, weight: weight), weight: weight)
    }

    private mutating func setWeight(_ weight: Int, ofTicket ticket: Int) {
        guard let (key, finish, old) = keys[ticket], old != weight else { return }
        let start = finish - Self.turn(weight: old)
        place(ticket, of: key, finish: start + Self.turn(weight: weight), weight: weight)
    }

    private mutating func place(_ ticket: Int, of key: Key, finish: Int64, weight: Int) {
        keys[ticket] = (key, finish, weight)
        order.set(ticket, to: .microseconds(finish))
    }

    private static func turn(weight: Int) -> Int64 { round / Int64(weight) }

    private mutating func finish(of key: Key, weight: Int) -> Int64 {
        let turn = Self.turn(weight: weight)
        guard weight > 1 else { return time + turn }
        let missed = Self.round - turn
        let finish = max(finishes[key] ?? time, time - missed) + turn
        forgetOld()
        return finish
    }

    mutating func remove(_ key: Key) {
        guard let ticket = tickets.removeValue(forKey: key) else { return }
        keys[ticket] = nil
        order.set(ticket, to: nil)
    }

    /// Removes and returns the next key; `nil` if the queue is empty.
    mutating func removeFirst() -> Key? {
        guard let ticket = order.removeFirst(until: .never),
            let (key, finish, weight) = keys.removeValue(forKey: ticket)
        else { return nil }
        tickets[key] = nil
        time = max(time, finish)
        if weight > 1 {
            finishes[key] = finish
            forgetOld()
        }
        return key
    }

    /// Drops the finish times that no longer matter, so that the memory does not grow with the number of keys that were
    /// ever in the queue.
    private mutating func forgetOld() {
        guard finishes.count > 64 + 2 * tickets.count else { return }
        let time = time
        finishes = finishes.filter { $0.value > time - Self.round }
    }
}

/// A queue of unique keys in groups. The groups take turns, and so do the keys of a group, so that a group with many
/// keys does not delay another one.
struct GroupedQueue<Group: Hashable & Sendable, Key: Hashable & Sendable>: Sendable {
    private var order = WeightedQueue<Group>()
    private var members: [Group: WeightedQueue<Key>] = [:]
    /// The group in which each key waits.
    private var places: [Key: Group] = [:]

    /// The number of keys.
    var count: Int { places.count }

    var isEmpty: Bool { places.isEmpty }

    /// The groups that have keys, in no particular order.
    var groups: some Collection<Group> { members.keys }

    func contains(_ key: Key) -> Bool { places[key] != nil }

    /// Returns the group in which a key waits; `nil` if it does not wait.
    func group(of key: Key) -> Group? { places[key] }

    /// Adds a key. A key that is already in the same group keeps its place, unless its weight has changed; see
    /// ``WeightedQueue/append(_:weight:)``.
    mutating func add(_ key: Key, to group: Group, weight: Int = 1) {
        if places[key] != group {
            remove(key)
            places[key] = group
            order.append(group)
        }
        members[group, default: WeightedQueue()].append(key, weight: weight)
    }

    mutating func remove(_ key: Key) {
        guard let group = places.removeValue(forKey: key) else { return }
        members[group]?.remove(key)
        guard members[group]?.isEmpty == true else { return }
        members[group] = nil
        order.remove(group)
    }

    /// Removes and returns the next key of the first group that is ready; `nil` if none is. Groups before it that are not
    /// ready move to the end, in their order.
    mutating func removeFirst(where isReady: (Group) -> Bool = { _ in true }) -> (key: Key, group: Group)? {
        for _ in 0..<members.count {
            guard let group = order.removeFirst() else { return nil }
            guard isReady(group), let key = members[group]?.removeFirst() else {
                order.append(group)
                continue
            }
            places[key] = nil
            if members[group]?.isEmpty == true { members[group] = nil } else { order.append(group) }
            return (key, group)
        }
        return nil
    }
}

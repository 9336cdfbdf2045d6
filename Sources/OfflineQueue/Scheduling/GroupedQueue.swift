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

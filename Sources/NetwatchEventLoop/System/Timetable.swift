/// A priority queue of keys by their times. It is a binary heap that knows the position of each key, so that changing a
/// key's time takes O(log keys). Keys with equal times are in the order of the keys, so that a run can be replayed.
///
/// The type is public for the same reason as ``Lock``: other modules would not specialize a `package` type, and would
/// run it several times slower.
public struct Timetable<Key: Hashable & Comparable, Moment: Comparable> {
    @usableFromInline var heap: [(moment: Moment, key: Key)] = []
    @usableFromInline var places: [Key: Int] = [:]

    /// Creates an empty timetable.
    @inlinable public init() {}

    /// The earliest time; `nil` if there are no keys.
    @inlinable public var first: Moment? { heap.first?.moment }

    /// Returns whether a key has a time.
    @inlinable public func contains(_ key: Key) -> Bool { places[key] != nil }

    /// Sets the time of a key.
    ///
    /// - Parameter moment: The time; `nil` removes the key.
    @inlinable public mutating func set(_ key: Key, to moment: Moment?) {
        guard let moment else { return remove(key) }
        let place = places[key] ?? heap.count
        if place == heap.count { heap.append((moment, key)) } else { heap[place].moment = moment }
        move(from: place)
    }

    /// Removes and returns the key with the earliest time; `nil` if that time is after `now`.
    @inlinable public mutating func removeFirst(until now: Moment) -> Key? {
        guard let first = heap.first, first.moment <= now else { return nil }
        remove(first.key)
        return first.key
    }

    @inlinable mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        move(from: place)
    }

    /// Moves an entry up or down to its place.
    @inlinable mutating func move(from start: Int) {
        var place = start
        let entry = heap[place]
        while place > 0, case let parent = (place - 1) / 2, entry < heap[parent] {
            put(heap[parent], at: place)
            place = parent
        }
        while let child = smallerChild(of: place), heap[child] < entry {
            put(heap[child], at: place)
            place = child
        }
        put(entry, at: place)
    }

    @inlinable func smallerChild(of place: Int) -> Int? {
        let (left, right) = (2 * place + 1, 2 * place + 2)
        guard left < heap.count else { return nil }
        return right < heap.count && heap[right] < heap[left] ? right : left
    }

    @inlinable mutating func put(_ entry: (moment: Moment, key: Key), at place: Int) {
        heap[place] = entry
        places[entry.key] = place
    }
}

extension Timetable: Sendable where Key: Sendable, Moment: Sendable {}

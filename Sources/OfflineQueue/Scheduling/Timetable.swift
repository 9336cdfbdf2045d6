/// A priority queue of keys by their time. It is a binary heap that knows the position of each key, so that changing a
/// key's time takes O(log keys). Keys with equal times are in the order of the keys, so that a run of the scheduler can
/// be replayed.
struct Timetable<Key: Hashable & Comparable & Sendable>: Sendable {
    private struct Entry: Comparable, Sendable {
        let moment: Moment
        let key: Key

        static func < (left: Entry, right: Entry) -> Bool {
            (left.moment, left.key) < (right.moment, right.key)
        }
    }

    private var heap: [Entry] = []
    private var places: [Key: Int] = [:]

    /// The earliest time; `nil` if there are no keys.
    var first: Moment? { heap.first?.moment }

    func contains(_ key: Key) -> Bool { places[key] != nil }

    /// Sets the time of a key.
    ///
    /// - Parameter moment: The time; `nil` removes the key.
    mutating func set(_ key: Key, to moment: Moment?) {
        guard let moment else { return remove(key) }
        let entry = Entry(moment: moment, key: key)
        guard let place = places[key] else {
            heap.append(entry)
            return rise(from: heap.count - 1)
        }
        let isEarlier = entry < heap[place]
        heap[place] = entry
        if isEarlier { rise(from: place) } else { sink(from: place) }
    }

    /// Removes and returns the key with the earliest time; `nil` if that time is after `now`.
    mutating func removeFirst(until now: Moment) -> Key? {
        guard let first = heap.first, first.moment <= now else { return nil }
        remove(first.key)
        return first.key
    }

    private mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        rise(from: place)
        sink(from: places[last.key]!)
    }

    private mutating func rise(from start: Int) {
        var place = start
        let entry = heap[place]
        while place > 0, entry < heap[(place - 1) / 2] {
            put(heap[(place - 1) / 2], at: place)
            place = (place - 1) / 2
        }
        put(entry, at: place)
    }

    private mutating func sink(from start: Int) {
        var place = start
        let entry = heap[place]
        while let child = smallerChild(of: place), heap[child] < entry {
            put(heap[child], at: place)
            place = child
        }
        put(entry, at: place)
    }

    private func smallerChild(of place: Int) -> Int? {
        let (left, right) = (2 * place + 1, 2 * place + 2)
        guard left < heap.count else { return nil }
        return right < heap.count && heap[right] < heap[left] ? right : left
    }

    private mutating func put(_ entry: Entry, at place: Int) {
        heap[place] = entry
        places[entry.key] = place
    }
}

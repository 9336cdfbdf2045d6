/// When each lane is to be looked at again: a binary heap that knows where each lane is, so that a change costs
/// O(log lanes). Equal moments are in the order of the ids, so that a run can be replayed.
struct Timetable: Sendable {
    private struct Entry: Comparable, Sendable {
        let moment: Moment
        let lane: Int64

        static func < (left: Entry, right: Entry) -> Bool {
            (left.moment, left.lane) < (right.moment, right.lane)
        }
    }

    private var heap: [Entry] = []
    private var places: [Int64: Int] = [:]

    var first: Moment? { heap.first?.moment }

    /// - Parameter moment: `nil` removes the lane.
    mutating func set(_ lane: Int64, to moment: Moment?) {
        guard let moment else { return remove(lane) }
        let entry = Entry(moment: moment, lane: lane)
        guard let place = places[lane] else {
            heap.append(entry)
            return rise(from: heap.count - 1)
        }
        let isEarlier = entry < heap[place]
        heap[place] = entry
        if isEarlier { rise(from: place) } else { sink(from: place) }
    }

    /// Removes the first lane and returns it if its moment has come.
    mutating func removeFirst(until now: Moment) -> Int64? {
        guard let first = heap.first, first.moment <= now else { return nil }
        remove(first.lane)
        return first.lane
    }

    private mutating func remove(_ lane: Int64) {
        guard let place = places.removeValue(forKey: lane) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        rise(from: place)
        sink(from: places[last.lane]!)
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
        places[entry.lane] = place
    }
}

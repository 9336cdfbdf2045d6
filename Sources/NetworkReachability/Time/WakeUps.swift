/// The wake-up times of the keys. A binary heap, so that with ten thousand names each wake-up takes only logarithmic
/// time.
struct WakeUps<Key: Hashable> {
    private typealias Entry = (moment: ContinuousClock.Instant, key: Key)

    private var due: [Key: ContinuousClock.Instant] = [:]
    /// A heap: no entry is earlier than its parent at `(index - 1) / 2`. An entry is obsolete if its key has another
    /// time in `due`.
    private var heap: [Entry] = []

    /// A lower bound of the earliest time: the first entry may be obsolete.
    var earliest: ContinuousClock.Instant? { heap.first?.moment }

    mutating func set(_ key: Key, _ moment: ContinuousClock.Instant?) {
        guard due[key] != moment else { return }
        due[key] = moment
        if let moment { insert((moment, key)) }
        // Frequently postponed keys must not make the heap grow without limit.
        if heap.count > 64 + 2 * due.count { removeObsolete() }
    }

    /// Removes and returns all keys whose time has come.
    mutating func takeDue(at now: ContinuousClock.Instant) -> [Key] {
        var keys: [Key] = []
        while let first = heap.first, first.moment <= now {
            removeFirst()
            guard due[first.key] == first.moment else { continue }
            due[first.key] = nil
            keys.append(first.key)
        }
        return keys
    }

    private mutating func removeObsolete() {
        heap = due.map { ($0.value, $0.key) }.sorted { $0.moment < $1.moment }
    }

    private mutating func insert(_ entry: Entry) {
        heap.append(entry)
        var index = heap.count - 1
        while index > 0, case let parent = (index - 1) / 2, heap[index].moment < heap[parent].moment {
            heap.swapAt(index, parent)
            index = parent
        }
    }

    private mutating func removeFirst() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while let child = earlierChild(of: index), heap[child].moment < heap[index].moment {
            heap.swapAt(index, child)
            index = child
        }
    }

    private func earlierChild(of index: Int) -> Int? {
        let (left, right) = (2 * index + 1, 2 * index + 2)
        guard left < heap.count else { return nil }
        return right < heap.count && heap[right].moment < heap[left].moment ? right : left
    }
}

internal import NetwatchEventLoop

/// A wake-up time for each key, such as the time when a watched name is due for a lookup.
///
/// A binary heap finds the earliest one in logarithmic time, even with ten thousand names.
struct WakeUps<Key: Hashable> {
    private typealias Entry = (moment: BootInstant, key: Key)

    private var due: [Key: BootInstant] = [:]
    /// A heap: no entry is earlier than its parent at `(index - 1) / 2`.
    ///
    /// An entry is obsolete if `due` has no time or another time for its key.
    private var heap: [Entry] = []

    /// A time that is not later than any wake-up time. It may be earlier than all of them, because the first entry may
    /// be obsolete.
    var earliest: BootInstant? { heap.first?.moment }

    mutating func set(_ key: Key, _ moment: BootInstant?) {
        guard due[key] != moment else { return }
        due[key] = moment
        if let moment { insert((moment, key)) }
        // Each postponement of a key adds an entry. Without this, they would accumulate without limit.
        if heap.count > 64 + 2 * due.count { removeObsolete() }
    }

    /// Removes and returns all keys whose wake-up time is not later than `now`.
    mutating func takeDue(at now: BootInstant) -> [Key] {
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

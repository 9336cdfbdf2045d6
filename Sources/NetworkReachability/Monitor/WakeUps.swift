/// Who has to be looked after when: a binary heap, so that ten thousand names cost no more than their number's logarithm
/// whenever one is due.
struct WakeUps<Key: Hashable> {
    private typealias Entry = (moment: ContinuousClock.Instant, key: Key)

    private var due: [Key: ContinuousClock.Instant] = [:]
    /// No entry is earlier than its parent at `(index - 1) / 2`. One whose key has another moment by now is obsolete.
    private var heap: [Entry] = []

    /// Not later than the earliest moment: one that was put off may have been it.
    var earliest: ContinuousClock.Instant? { heap.first?.moment }

    mutating func set(_ key: Key, _ moment: ContinuousClock.Instant?) {
        guard due[key] != moment else { return }
        due[key] = moment
        if let moment { insert((moment, key)) }
        // Moments that are put off again and again must not fill the memory.
        if heap.count > 64 + 2 * due.count { removeObsolete() }
    }

    /// Takes out everyone whose moment has come.
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

/// A queue of pending reads or writes in the order requested. A request to close the reading or writing side is an
/// entry, too.
///
/// Entries are stored by their number, so that each can be cancelled. Numbers increase, but some may be missing,
/// because reads and writes are numbered together and are in separate queues.
struct StreamQueue<Operation> {
    enum Entry {
        case operation(Operation)
        case close
    }

    private var entries: [Int: Entry] = [:]
    /// The lowest number in the queue.
    private var first = 0

    var head: Entry? { entries[first] }

    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ entry: Entry, number: Int) {
        if entries.isEmpty { first = number }
        entries[number] = entry
    }

    mutating func replaceHead(by entry: Entry) { entries[first] = entry }

    mutating func removeHead() { _ = remove(first) }

    /// Removes an operation at any position. Returns `nil` if it is not in the queue.
    mutating func remove(_ number: Int) -> Operation? {
        let entry = entries.removeValue(forKey: number)
        while !entries.isEmpty, entries[first] == nil { first += 1 }
        guard case .operation(let operation) = entry else { return nil }
        return operation
    }

    /// Removes all operations and returns them in order.
    mutating func removeAll() -> [Operation] {
        defer { entries = [:] }
        return entries.sorted { $0.key < $1.key }.compactMap { entry in
            if case .operation(let operation) = entry.value { operation } else { nil }
        }
    }
}

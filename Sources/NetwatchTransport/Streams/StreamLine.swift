/// Reads, or writes, in the order in which they were asked for, and where among them their side is closed.
///
/// Any of them may be given up, so they are kept by number. Numbers rise; some may be missing.
struct StreamLine<Operation> {
    enum Entry {
        case operation(Operation)
        case close
    }

    private var entries: [Int: Entry] = [:]
    /// No entry has a lower number.
    private var first = 0

    var head: Entry? { entries[first] }

    var isEmpty: Bool { entries.isEmpty }

    mutating func append(_ entry: Entry, number: Int) {
        if entries.isEmpty { first = number }
        entries[number] = entry
    }

    mutating func replaceHead(by entry: Entry) { entries[first] = entry }

    mutating func removeHead() { _ = remove(first) }

    /// Takes an operation out, wherever it is. `nil` when it is not, or no longer, in the line.
    mutating func remove(_ number: Int) -> Operation? {
        let entry = entries.removeValue(forKey: number)
        while !entries.isEmpty, entries[first] == nil { first += 1 }
        guard case .operation(let operation) = entry else { return nil }
        return operation
    }

    /// Takes all operations out, in order.
    mutating func removeAll() -> [Operation] {
        defer { entries = [:] }
        return entries.sorted { $0.key < $1.key }.compactMap { entry in
            if case .operation(let operation) = entry.value { operation } else { nil }
        }
    }
}

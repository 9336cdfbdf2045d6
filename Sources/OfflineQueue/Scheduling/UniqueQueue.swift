/// A queue of unique keys. Appending, taking the first and removing any key are amortized O(1).
struct UniqueQueue<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let key: Key
        let ticket: Int
    }

    /// The queued entries; those before ``front`` were taken. An entry was removed if its ticket differs from its
    /// key's.
    private var entries: [Entry] = []
    private var front = 0
    private var tickets: [Key: Int] = [:]
    private var lastTicket = 0

    var isEmpty: Bool { tickets.isEmpty }

    /// The number of entries in memory, including taken and removed ones.
    var memory: Int { entries.count }

    func contains(_ key: Key) -> Bool { tickets[key] != nil }

    /// Appends a key. A key that is already queued keeps its place.
    mutating func append(_ key: Key) {
        guard tickets[key] == nil else { return }
        lastTicket += 1
        tickets[key] = lastTicket
        entries.append(Entry(key: key, ticket: lastTicket))
        if entries.count > 2 * tickets.count + 32 { compact() }
    }

    mutating func remove(_ key: Key) {
        tickets[key] = nil
    }

    mutating func removeFirst() -> Key? {
        while front < entries.count {
            let entry = entries[front]
            front += 1
            if isQueued(entry) {
                tickets[entry.key] = nil
                return entry.key
            }
        }
        return nil
    }

    private func isQueued(_ entry: Entry) -> Bool { tickets[entry.key] == entry.ticket }

    /// Drops taken and removed entries. Otherwise a key that is repeatedly added and removed would leave an entry each
    /// time.
    private mutating func compact() {
        entries = entries[front...].filter(isQueued)
        front = 0
    }
}

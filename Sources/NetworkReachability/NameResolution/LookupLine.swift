internal import NetwatchEventLoop

/// The names that wait for a lookup, in the order of their arrival. A pure value.
struct LookupLine: Sendable {
    private struct Entry: Sendable {
        let name: String
        let ticket: UInt64
    }

    /// When a name is removed, its entry stays in the queue. The entry is invalid, because its ticket no longer matches.
    private var entries = FIFOQueue<Entry>()
    private var tickets: [String: UInt64] = [:]
    private var lastTicket: UInt64 = 0
    private var invalidEntries = 0

    var isEmpty: Bool { tickets.isEmpty }

    /// The number of names that wait.
    var count: Int { tickets.count }

    /// The number of entries, including invalid ones. For tests.
    var entryCount: Int { count + invalidEntries }

    /// Appends a name, unless it already waits. Returns whether it was appended.
    mutating func append(_ name: String) -> Bool {
        guard tickets[name] == nil else { return false }
        lastTicket += 1
        tickets[name] = lastTicket
        entries.append(Entry(name: name, ticket: lastTicket))
        return true
    }

    /// Removes a name. Has no effect if it does not wait.
    mutating func remove(_ name: String) {
        guard tickets.removeValue(forKey: name) != nil else { return }
        invalidEntries += 1
        // Without this cleanup, watches that begin and end again and again would fill the memory.
        guard invalidEntries > 64 + count else { return }
        entries.keep { tickets[$0.name] == $0.ticket }
        invalidEntries = 0
    }

    /// Removes and returns the name that has waited for the longest time; `nil` if none waits.
    mutating func popFirst() -> String? {
        while let entry = entries.popFirst() {
            guard tickets[entry.name] == entry.ticket else {
                invalidEntries -= 1
                continue
            }
            tickets[entry.name] = nil
            return entry.name
        }
        return nil
    }
}

/// A queue of unique keys. Appending, taking the first and removing any key are amortized O(1).
struct TurnLine<Key: Hashable & Sendable>: Sendable {
    private struct Place: Sendable {
        let key: Key
        let ticket: Int
    }

    /// The queued entries; those before ``front`` were taken. An entry was removed if its ticket differs from its
    /// key's.
    private var places: [Place] = []
    private var front = 0
    private var tickets: [Key: Int] = [:]
    private var lastTicket = 0

    var isEmpty: Bool { tickets.isEmpty }

    /// The number of entries in memory, including taken and removed ones.
    var memory: Int { places.count }

    func contains(_ key: Key) -> Bool { tickets[key] != nil }

    /// Appends a key. A key that is already queued keeps its place.
    mutating func append(_ key: Key) {
        guard tickets[key] == nil else { return }
        lastTicket += 1
        tickets[key] = lastTicket
        places.append(Place(key: key, ticket: lastTicket))
        if places.count > 2 * tickets.count + 32 { compact() }
    }

    mutating func remove(_ key: Key) {
        tickets[key] = nil
    }

    mutating func removeFirst() -> Key? {
        while front < places.count {
            let place = places[front]
            front += 1
            if isTaken(place) {
                tickets[place.key] = nil
                return place.key
            }
        }
        return nil
    }

    private func isTaken(_ place: Place) -> Bool { tickets[place.key] == place.ticket }

    /// Drops taken and removed entries. Otherwise a key that is repeatedly added and removed would leave an entry each
    /// time.
    private mutating func compact() {
        places = places[front...].filter(isTaken)
        front = 0
    }
}

/// Keys that take turns: appended at the end, taken from the front, removed anywhere, each in amortized O(1).
struct TurnLine<Key: Hashable & Sendable>: Sendable {
    private struct Place: Sendable {
        let key: Key
        let ticket: Int
    }

    /// Places before ``front`` are taken. One whose ticket is not its key's was removed.
    private var places: [Place] = []
    private var front = 0
    private var tickets: [Key: Int] = [:]
    private var lastTicket = 0

    var isEmpty: Bool { tickets.isEmpty }

    /// How many places it keeps, those taken or removed among them.
    var memory: Int { places.count }

    func contains(_ key: Key) -> Bool { tickets[key] != nil }

    /// A key that is in the line keeps its place.
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

    /// Without it, a key that comes and goes while no turn is taken would leave a place each time.
    private mutating func compact() {
        places = places[front...].filter(isTaken)
        front = 0
    }
}

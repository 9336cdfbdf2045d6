/// Which connection is where, as a value: it decides who is served, who is refused and who has to make room.
///
/// A connection holds a slot of a class only while its request is served. In every other place it can be closed
/// without loss, so there the oldest connection makes room for a new one.
struct ConnectionLedger {
    typealias ID = UInt64

    enum Place: Hashable {
        /// Its request is not complete.
        case arriving
        case served(ConnectionClass)
        /// A response of this many bytes is on its way.
        case responding(bytes: Int)
        /// Kept alive between two requests.
        case idle
        case lingering
    }

    enum Entrance {
        case admitted
        case full
        /// The connection is being closed.
        case gone
    }

    /// What has to happen before one more connection is accepted.
    enum Room: Equatable {
        case free
        /// These may be closed, unless they have sent something in the meantime.
        case closing([ID])
        case after(Duration)
    }

    private struct Entry {
        var place: Place
        /// Rises with every change of a place.
        var order: UInt64
        /// When it came to its place; `nil` before its channel became active.
        var since: ContinuousClock.Instant?
    }

    private let limits: ControlServer.Limits
    private var entries: [ID: Entry] = [:]
    private var counts: [Kind: Int] = [:]
    private var respondingBytes = 0
    private var last: UInt64 = 0

    init(limits: ControlServer.Limits) {
        self.limits = limits
    }

    private mutating func next() -> UInt64 {
        last += 1
        return last
    }
}

// MARK: - Changes

extension ConnectionLedger {
    /// Adds a connection that was accepted.
    mutating func add() -> ID {
        let id = next()
        entries[id] = Entry(place: .arriving, order: id)
        count(.arriving, 1)
        return id
    }

    /// From now on the connection can send its request, and may have to make room.
    mutating func activate(_ id: ID, now: ContinuousClock.Instant) {
        entries[id]?.since = now
    }

    mutating func remove(_ id: ID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        count(entry.place, -1)
    }

    /// Gives a connection a slot of a class, if one is free.
    mutating func enter(_ connectionClass: ConnectionClass, _ id: ID) -> Entrance {
        guard entries[id] != nil else { return .gone }
        let place = Place.served(connectionClass)
        guard counts[place.kind, default: 0] < limits.connections(of: connectionClass) else { return .full }
        put(id, into: place)
        return .admitted
    }

    /// Moves a connection to a place without a class.
    ///
    /// - Returns: The connections that have to be closed for that. They are no longer in the ledger.
    mutating func move(_ id: ID, to place: Place, now: ContinuousClock.Instant) -> [ID] {
        guard let entry = entries[id], entry.place != place else { return [] }
        put(id, into: place)
        entries[id]?.since = now
        var closing: [ID] = []
        while isOver(place.kind), let oldest = oldest(in: place.kind), oldest != id {
            remove(oldest)
            closing.append(oldest)
        }
        return closing
    }

    private mutating func put(_ id: ID, into place: Place) {
        guard var entry = entries[id] else { return }
        count(entry.place, -1)
        count(place, 1)
        entry.place = place
        entry.order = next()
        entries[id] = entry
    }

    private mutating func count(_ place: Place, _ change: Int) {
        counts[place.kind, default: 0] += change
        if case .responding(let bytes) = place { respondingBytes += change * bytes }
    }
}

// MARK: - Room

extension ConnectionLedger {
    /// Makes room for one more connection.
    ///
    /// A connection keeps its place for ``ControlServer/Limits/arrivalGrace``: a burst of good clients waits in the
    /// listener's backlog, and a crowd of silent ones makes room. One that is not closed has another grace.
    mutating func makeRoom(now: ContinuousClock.Instant) -> Room {
        guard counts[.arriving, default: 0] >= limits.arrivingConnections else { return .free }
        let arriving = entries.compactMap { id, entry in
            entry.place == .arriving ? entry.since.map { (id: id, since: $0) } : nil
        }
        let old = arriving.filter { now - $0.since >= limits.arrivalGrace }.sorted { $0.since < $1.since }
        guard !old.isEmpty else {
            let oldest = arriving.map(\.since).min() ?? now
            return .after(limits.arrivalGrace - (now - oldest))
        }
        let chosen = old.prefix(max(1, limits.arrivingConnections / 8)).map(\.id)
        for id in chosen { entries[id]?.since = now }
        return .closing(chosen)
    }

    /// Whether a connection has no complete request yet.
    func isArriving(_ id: ID) -> Bool { entries[id]?.place == .arriving }

    private func isOver(_ kind: Kind) -> Bool {
        let count = counts[kind, default: 0]
        return switch kind {
        // Only a new connection makes them close, see `makeRoom(now:)`.
        case .arriving: false
        case .idle: count > limits.idleConnections
        case .lingering: count > limits.lingeringConnections
        case .responding: count > limits.respondingConnections || respondingBytes > limits.respondingBytes
        case .served: false
        }
    }

    /// Only active ones: the others have not had their chance yet.
    private func oldest(in kind: Kind) -> ID? {
        entries.lazy.filter { $0.value.place.kind == kind && $0.value.since != nil }
            .min { $0.value.order < $1.value.order }?.key
    }
}

// MARK: - Kinds of places

extension ConnectionLedger {
    fileprivate enum Kind: Hashable {
        case arriving, responding, idle, lingering
        case served(ConnectionClass)
    }
}

extension ConnectionLedger.Place {
    fileprivate var kind: ConnectionLedger.Kind {
        switch self {
        case .arriving: .arriving
        case .served(let connectionClass): .served(connectionClass)
        case .responding: .responding
        case .idle: .idle
        case .lingering: .lingering
        }
    }
}

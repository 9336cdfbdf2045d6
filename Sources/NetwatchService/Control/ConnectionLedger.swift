/// Which connection is where, as a value: it decides who is served, who is refused and who has to make room.
///
/// A connection holds a slot of a class only while its request is served. A client may close its connection before;
/// the slot is then kept until the handler has ended, because until then it costs as much as before. In every other
/// place a connection can be closed without loss, so there the oldest one makes room for a new one.
struct ConnectionLedger {
    typealias ID = UInt64

    enum Place: Hashable {
        /// Its request is not complete.
        case arriving
        /// With a body of this many bytes, 0 while it is being read.
        case served(ConnectionClass, bytes: Int = 0)
        /// A response of this many bytes is on its way. The client can ask again for one that is `repeatable`.
        case responding(bytes: Int, isRepeatable: Bool)
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
        /// Whether a handler works on its request.
        var isHandled = false
        /// Whether only its handler is left of it.
        var isClosed = false

        /// The order in which the connections in a place make room.
        var rank: (Int, UInt64) { (place.isUnique ? 1 : 0, order) }
    }

    private let limits: ControlServer.Limits
    private var entries: [ID: Entry] = [:]
    private var loads: [Kind: Load] = [:]
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

    /// Gives a connection a slot of a class, if one is free, in place of the slot that it has.
    ///
    /// - Parameter bytes: What its body has.
    mutating func enter(_ connectionClass: ConnectionClass, _ id: ID, bytes: Int = 0) -> Entrance {
        guard let entry = entries[id], !entry.isClosed else { return .gone }
        let place = Place.served(connectionClass, bytes: bytes)
        let load = loads[place.kind, default: Load()]
        guard load.count < limits.connections(of: connectionClass),
            load.bytes == 0 || load.bytes + bytes <= limits.servedBytes
        else { return .full }
        put(id, into: place)
        return .admitted
    }

    /// A handler begins to work on the connection's request.
    mutating func beginHandling(_ id: ID) {
        entries[id]?.isHandled = true
    }

    /// The handler has ended.
    mutating func endHandling(_ id: ID) {
        entries[id]?.isHandled = false
        if entries[id]?.isClosed == true { remove(id) }
    }

    /// The connection was closed. A handler of its request keeps the slot until it ends.
    mutating func close(_ id: ID) {
        entries[id]?.isClosed = true
        if entries[id]?.isHandled == false { remove(id) }
    }

    private mutating func remove(_ id: ID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        count(entry.place, -1)
    }

    /// Moves a connection to a place without a class.
    ///
    /// - Returns: The connections that have to be closed for that. They are no longer in the ledger.
    mutating func move(_ id: ID, to place: Place, now: ContinuousClock.Instant) -> [ID] {
        guard let entry = entries[id], !entry.isClosed, entry.place != place else { return [] }
        put(id, into: place)
        entries[id]?.since = now
        var closing: [ID] = []
        while isOver(place.kind), let dispensable = mostDispensable(in: place.kind, except: id) {
            remove(dispensable)
            closing.append(dispensable)
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
        loads[place.kind, default: Load()].count += change
        loads[place.kind, default: Load()].bytes += change * place.bytes
    }
}

// MARK: - Room

extension ConnectionLedger {
    /// Makes room for one more connection.
    ///
    /// A connection keeps its place for ``ControlServer/Limits/arrivalGrace``: a burst of good clients waits in the
    /// listener's backlog, and a crowd of silent ones makes room. One that is not closed has another grace.
    mutating func makeRoom(now: ContinuousClock.Instant) -> Room {
        guard loads[.arriving, default: Load()].count >= limits.arrivingConnections else { return .free }
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
        let load = loads[kind, default: Load()]
        return switch kind {
        // Only a new connection makes them close, see `makeRoom(now:)`.
        case .arriving: false
        case .idle: load.count > limits.idleConnections
        case .lingering: load.count > limits.lingeringConnections
        case .responding: load.count > limits.respondingConnections || load.bytes > limits.respondingBytes
        case .served: false
        }
    }

    /// The oldest one, of those first whose client loses nothing but time. Only active ones: the others have not had
    /// their chance yet.
    private func mostDispensable(in kind: Kind, except newest: ID) -> ID? {
        entries.lazy.filter { $0.key != newest && $0.value.place.kind == kind && $0.value.since != nil }
            .min { $0.value.rank < $1.value.rank }?.key
    }
}

// MARK: - Kinds of places

extension ConnectionLedger {
    fileprivate enum Kind: Hashable {
        case arriving, responding, idle, lingering
        case served(ConnectionClass)
    }

    /// What is in the places of a kind.
    fileprivate struct Load {
        var count = 0
        var bytes = 0
    }
}

extension ConnectionLedger.Place {
    fileprivate var kind: ConnectionLedger.Kind {
        switch self {
        case .arriving: .arriving
        case .served(let connectionClass, _): .served(connectionClass)
        case .responding: .responding
        case .idle: .idle
        case .lingering: .lingering
        }
    }
    fileprivate var bytes: Int {
        switch self {
        case .served(_, let bytes), .responding(let bytes, _): bytes
        case .arriving, .idle, .lingering: 0
        }
    }

    /// Whether it has a response that the client cannot ask for again.
    fileprivate var isUnique: Bool {
        if case .responding(_, isRepeatable: false) = self { true } else { false }
    }
}

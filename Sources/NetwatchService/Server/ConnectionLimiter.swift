/// Decides which connections are served, refused or closed, by what they are doing. It is a value without side effects.
///
/// A connection holds a slot of a ``ConnectionClass`` only while its request is served. If the client closes the
/// connection earlier, the slot stays taken until the handler returns, because the handler still uses the same
/// resources. In the other stages a connection holds no slot. If too many connections are in such a stage, the oldest
/// of them is closed.
struct ConnectionLimiter {
    typealias ID = UInt64

    /// What a connection is doing.
    enum Stage: Hashable {
        /// The request is not complete.
        case arriving
        /// The server is serving the request. `bytes` is the length of its body, 0 while the body is being read.
        case served(ConnectionClass, bytes: Int = 0)
        /// The server is sending a response of this many bytes. If it is `isRepeatable`, the client can send the
        /// request again.
        case responding(bytes: Int, isRepeatable: Bool)
        /// The connection is kept alive between two requests.
        case idle
        /// The last response was sent. The server discards further input.
        case lingering
    }

    /// The result of a request for a slot.
    enum Admission {
        case admitted
        case full
        /// The connection is being closed.
        case closed
    }

    /// Whether the server accepts another connection now.
    enum AcceptDecision: Equatable {
        case accept
        /// Close these connections first, except those that have sent something in the meantime.
        case evict([ID])
        /// Decide again after this time.
        case wait(Duration)
    }

    private struct Entry {
        var stage: Stage
        /// A number from a counter. The connection with the lowest number has been in its stage for the longest time.
        var order: UInt64
        /// When the connection entered its stage; `nil` until its channel becomes active.
        var since: ContinuousClock.Instant?
        /// Whether a handler is working on the connection's request.
        var isHandled = false
        /// Whether the connection is closed and only its handler is still running.
        var isClosed = false

        /// The order in which connections of the same kind of stage are closed, lowest first. Connections with a
        /// response that the client cannot request again come last.
        var rank: (Int, UInt64) { (stage.isUnique ? 1 : 0, order) }
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

extension ConnectionLimiter {
    /// Adds an accepted connection.
    mutating func add() -> ID {
        let id = next()
        entries[id] = Entry(stage: .arriving, order: id)
        count(.arriving, 1)
        return id
    }

    /// Marks the connection as active. From now on it can send its request, and it may be closed to admit others.
    mutating func activate(_ id: ID, now: ContinuousClock.Instant) {
        entries[id]?.since = now
    }

    /// Gives a connection a slot of a class if one is free. If so, the connection gives back the slot that it held
    /// before, if any.
    ///
    /// - Parameter bytes: The length of the request's body.
    mutating func requestSlot(_ connectionClass: ConnectionClass, _ id: ID, bytes: Int = 0) -> Admission {
        guard let entry = entries[id], !entry.isClosed else { return .closed }
        let stage = Stage.served(connectionClass, bytes: bytes)
        let load = loads[stage.kind, default: Load()]
        guard load.count < limits.connections(of: connectionClass),
            load.bytes == 0 || load.bytes + bytes <= limits.servedBytes
        else { return .full }
        put(id, into: stage)
        return .admitted
    }

    /// Records that a handler starts to work on the connection's request.
    mutating func beginHandling(_ id: ID) {
        entries[id]?.isHandled = true
    }

    /// Records that the handler has returned.
    mutating func endHandling(_ id: ID) {
        entries[id]?.isHandled = false
        if entries[id]?.isClosed == true { remove(id) }
    }

    /// Records that the connection was closed. A running handler keeps the slot until it returns.
    mutating func close(_ id: ID) {
        entries[id]?.isClosed = true
        if entries[id]?.isHandled == false { remove(id) }
    }

    private mutating func remove(_ id: ID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        count(entry.stage, -1)
    }

    /// Moves a connection to a stage in which it holds no slot.
    ///
    /// - Returns: The connections that must be closed, because the stage has too many. They were removed from the
    ///   limiter.
    mutating func move(_ id: ID, to stage: Stage, now: ContinuousClock.Instant) -> [ID] {
        guard let entry = entries[id], !entry.isClosed, entry.stage != stage else { return [] }
        put(id, into: stage)
        entries[id]?.since = now
        var closing: [ID] = []
        while isOver(stage.kind), let candidate = evictionCandidate(in: stage.kind, except: id) {
            remove(candidate)
            closing.append(candidate)
        }
        return closing
    }

    private mutating func put(_ id: ID, into stage: Stage) {
        guard var entry = entries[id] else { return }
        count(entry.stage, -1)
        count(stage, 1)
        entry.stage = stage
        entry.order = next()
        entries[id] = entry
    }

    private mutating func count(_ stage: Stage, _ change: Int) {
        loads[stage.kind, default: Load()].count += change
        loads[stage.kind, default: Load()].bytes += change * stage.bytes
    }
}

// MARK: - Admission

extension ConnectionLimiter {
    /// Decides whether one more connection is accepted.
    ///
    /// A connection cannot be evicted during its first ``ControlServer/Limits/arrivalGrace``. So a burst of
    /// well-behaved clients waits in the listener's backlog, while silent connections are closed. If a chosen
    /// connection stays open because it has sent something, another grace period starts for it.
    mutating func acceptDecision(now: ContinuousClock.Instant) -> AcceptDecision {
        guard loads[.arriving, default: Load()].count >= limits.arrivingConnections else { return .accept }
        let arriving = entries.compactMap { id, entry in
            entry.stage == .arriving ? entry.since.map { (id: id, since: $0) } : nil
        }
        let old = arriving.filter { now - $0.since >= limits.arrivalGrace }.sorted { $0.since < $1.since }
        guard !old.isEmpty else {
            let oldest = arriving.map(\.since).min() ?? now
            return .wait(limits.arrivalGrace - (now - oldest))
        }
        let chosen = old.prefix(max(1, limits.arrivingConnections / 8)).map(\.id)
        for id in chosen { entries[id]?.since = now }
        return .evict(chosen)
    }

    /// Returns whether a connection has no complete request yet.
    func isArriving(_ id: ID) -> Bool { entries[id]?.stage == .arriving }

    private func isOver(_ kind: Kind) -> Bool {
        let load = loads[kind, default: Load()]
        return switch kind {
        // Arriving connections are closed only to accept a new one, see `acceptDecision(now:)`.
        case .arriving: false
        case .idle: load.count > limits.idleConnections
        case .lingering: load.count > limits.lingeringConnections
        case .responding: load.count > limits.respondingConnections || load.bytes > limits.respondingBytes
        case .served: false
        }
    }

    /// Returns the connection of a kind that is closed first: the oldest one whose client can repeat its request, or
    /// else the oldest one. Connections that are not active yet are skipped, because they could not send anything so
    /// far.
    private func evictionCandidate(in kind: Kind, except newest: ID) -> ID? {
        entries.lazy.filter { $0.key != newest && $0.value.stage.kind == kind && $0.value.since != nil }
            .min { $0.value.rank < $1.value.rank }?.key
    }
}

// MARK: - Kinds of stages

extension ConnectionLimiter {
    fileprivate enum Kind: Hashable {
        case arriving, responding, idle, lingering
        case served(ConnectionClass)
    }

    /// The number of connections in a kind of stage, and their bytes.
    fileprivate struct Load {
        var count = 0
        var bytes = 0
    }
}

extension ConnectionLimiter.Stage {
    fileprivate var kind: ConnectionLimiter.Kind {
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

    /// Whether the connection holds a response that the client cannot request again.
    fileprivate var isUnique: Bool {
        if case .responding(_, isRepeatable: false) = self { true } else { false }
    }
}

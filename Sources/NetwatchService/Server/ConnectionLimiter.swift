internal import OfflineQueue

/// Decides which connections are served, refused or closed, by what they are doing. It is a value without side effects.
///
/// A user without full access gets only a share of the slots (``SharedLimit``). The connections of root, of the user of
/// the service, and of clients over TCP count for no user.
///
/// A connection holds a slot of a ``ConnectionClass`` only while its request is served. If the client closes the
/// connection earlier, the slot stays taken until the handler returns, because the handler still uses the same
/// resources. In the other stages a connection holds no slot. If too many connections are in such a stage, the oldest
/// one of the user with most of them is closed.
struct ConnectionLimiter {
    typealias ID = UInt64
    typealias User = UInt32

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
    enum Admission: Hashable {
        case admitted
        /// The users of this scope have all slots that they may have, or the bodies would be too large.
        case full(SharedLimit.Scope)
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
        /// The user for whom the connection counts, if any.
        let user: User?
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
    private var loads: [Kind: Loads] = [:]
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
    ///
    /// - Parameter user: The user for whom it counts; `nil` for none.
    mutating func add(for user: User?) -> ID {
        let id = next()
        entries[id] = Entry(user: user, stage: .arriving, order: id)
        count(.arriving, of: user, 1)
        return id
    }

    /// Marks the connection as active. From now on it can send its request, and it may be closed to admit others.
    mutating func activate(_ id: ID, now: ContinuousClock.Instant) {
        entries[id]?.since = now
    }

    /// Gives a connection a slot of a class if one is free for its user. If so, the connection gives back the slot that
    /// it held before, if any.
    ///
    /// - Parameter bytes: The length of the request's body.
    mutating func requestSlot(_ connectionClass: ConnectionClass, _ id: ID, bytes: Int = 0) -> Admission {
        guard let entry = entries[id], !entry.isClosed else { return .closed }
        let stage = Stage.served(connectionClass, bytes: bytes)
        let slots = SharedLimit(limits.connections(of: connectionClass))
        let bodies = SharedLimit(limits.servedBytes)
        for (scope, load) in loads[stage.kind, default: Loads()].scopes(of: entry.user) {
            // The large bodies of a user do not prevent the same user from sending small ones.
            let isBodyCounted = scope != .user || bytes > limits.smallBodyBytes
            guard load.count < slots.value(for: scope),
                !isBodyCounted || load.bytes == 0 || load.bytes + bytes <= bodies.value(for: scope)
            else { return .full(scope) }
        }
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
        count(entry.stage, of: entry.user, -1)
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
        count(entry.stage, of: entry.user, -1)
        count(stage, of: entry.user, 1)
        entry.stage = stage
        entry.order = next()
        entries[id] = entry
    }

    private mutating func count(_ stage: Stage, of user: User?, _ change: Int) {
        loads[stage.kind, default: Loads()].add(Load(count: change, bytes: change * stage.bytes), of: user)
    }
}

// MARK: - Admission

extension ConnectionLimiter {
    /// Decides whether one more connection is accepted.
    ///
    /// A connection cannot be evicted during its first ``ControlServer/Limits/arrivalGrace``. So a burst of
    /// well-behaved clients waits in the listener's backlog, while silent connections are closed, first those of the
    /// user with most of them. If a chosen connection stays open because it has sent something, another grace period
    /// starts for it.
    mutating func acceptDecision(now: ContinuousClock.Instant) -> AcceptDecision {
        let loads = loads[.arriving, default: Loads()]
        guard loads.all.count >= limits.arrivingConnections else { return .accept }
        let arriving = entries.compactMap { id, entry in
            entry.stage == .arriving
                ? entry.since.map { (id: id, since: $0, others: -loads[entry.user].count) } : nil
        }
        let old = arriving.filter { now - $0.since >= limits.arrivalGrace }
            .sorted { ($0.others, $0.since) < ($1.others, $1.since) }
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
        let load = loads[kind, default: Loads()].all
        return switch kind {
        // Arriving connections are closed only to accept a new one, see `acceptDecision(now:)`.
        case .arriving: false
        case .idle: load.count > limits.idleConnections
        case .lingering: load.count > limits.lingeringConnections
        case .responding: load.count > limits.respondingConnections || load.bytes > limits.respondingBytes
        case .served: false
        }
    }

    /// Returns the connection of a kind that is closed first: of the user with most connections or bytes, the oldest one
    /// whose client can repeat its request, or else the oldest one. Connections that are not active yet are skipped,
    /// because they could not send anything so far.
    private func evictionCandidate(in kind: Kind, except newest: ID) -> ID? {
        let loads = loads[kind, default: Loads()]
        let isOverBytes = kind == .responding && loads.all.bytes > limits.respondingBytes
        func rank(_ entry: Entry) -> (Int, Int, UInt64) {
            let load = loads[entry.user]
            return (isOverBytes ? -load.bytes : -load.count, entry.rank.0, entry.rank.1)
        }
        return entries.lazy.filter {
            $0.key != newest && $0.value.stage.kind == kind && $0.value.since != nil
        }
        .min { rank($0.value) < rank($1.value) }?.key
    }
}

// MARK: - Kinds of stages

extension ConnectionLimiter {
    fileprivate enum Kind: Hashable {
        case arriving, responding, idle, lingering
        case served(ConnectionClass)
    }

    /// A number of connections, and their bytes.
    fileprivate struct Load {
        var count = 0
        var bytes = 0

        mutating func add(_ other: Load) {
            count += other.count
            bytes += other.bytes
        }
    }

    /// The connections in a kind of stage.
    fileprivate struct Loads {
        private(set) var all = Load()
        /// The connections of users with a share.
        private var limited = Load()
        /// The connections of each of these users that has any.
        private var users: [User: Load] = [:]

        /// The connections of a user; for `nil`, those that count for no user.
        subscript(user: User?) -> Load {
            guard let user else {
                return Load(count: all.count - limited.count, bytes: all.bytes - limited.bytes)
            }
            return users[user, default: Load()]
        }

        mutating func add(_ load: Load, of user: User?) {
            all.add(load)
            guard let user else { return }
            limited.add(load)
            users[user, default: Load()].add(load)
            if users[user]?.count == 0 { users[user] = nil }
        }

        /// Returns the loads that limit another connection of a user.
        func scopes(of user: User?) -> [(scope: SharedLimit.Scope, load: Load)] {
            user == nil ? [(.all, all)] : [(.user, self[user]), (.users, limited), (.all, all)]
        }
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

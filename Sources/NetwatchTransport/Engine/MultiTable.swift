internal import NetwatchEventLoop
internal import Synchronization

/// A group of transfers with its own connections and its own connection limit. Each session has one.
///
/// When a pool is released, its transfers continue to their end.
package final class TransferPool: Sendable {
    /// An identifier of a pool, unique within the process.
    struct ID: Hashable, Sendable {
        /// The pool of the transfers that are started on the engine directly.
        static let common = ID(rawValue: 0)
        private static let next = Atomic<UInt64>(1)

        private let rawValue: UInt64

        private init(rawValue: UInt64) {
            self.rawValue = rawValue
        }

        static func make() -> ID {
            ID(rawValue: next.wrappingAdd(1, ordering: .relaxed).oldValue)
        }
    }

    /// The default limit of concurrent transfers to one host: 64. Servers can handle this number of connections, and
    /// more do not make small responses faster.
    package static let defaultConnectionsPerHost = 64

    package let engine: TransferEngine
    let id = ID.make()
    let connectionsPerHost: Int

    /// Creates a pool.
    ///
    /// - Parameters:
    ///   - engine: The engine that runs the transfers. Default: the engine that all sessions share.
    ///   - connectionsPerHost: The maximum number of concurrent transfers to one host (scheme, name and port), at least
    ///     1. Further transfers wait in the order of their priority. With HTTP/1.1, each transfer has a separate
    ///     connection. With HTTP/2, transfers share connections, and the limit is at least
    ///     ``ConnectionTable/streamsPerConnection``.
    package init(
        engine: TransferEngine = .shared,
        connectionsPerHost: Int = TransferPool.defaultConnectionsPerHost
    ) {
        self.engine = engine
        self.connectionsPerHost = max(1, connectionsPerHost)
    }

    deinit { engine.forget(id) }

    /// Starts a transfer.
    ///
    /// - Parameter deliver: Receives the events since its last call, in order. The last event of the transfer is always
    ///   ``TransferEvent/end(_:)``. The engine calls `deliver` on its own thread, so it must not block.
    @discardableResult
    package func start(
        _ request: TransferRequest,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) -> TransferID {
        engine.start(request, id, connectionsPerHost, deliver)
    }

    /// Makes later transfers use new connections. Running transfers keep theirs. Cached addresses stay valid, unlike
    /// after ``renewConnections()``.
    ///
    /// Use this when connections may have been made over an old network path.
    package func dropConnections() {
        engine.dropConnections(of: id)
    }

    /// Restarts the stalled transfers to a port of a host over new connections. Use this when a lost network path has
    /// returned.
    ///
    /// - A transfer that is still connecting begins its connection attempts again immediately.
    /// - A transfer whose request was sent restarts if the server has acknowledged none of it.
    /// - A request that must not arrive twice is not sent again.
    ///
    /// - Parameters:
    ///   - host: The host of the URL: a name in lower case, or an address (IPv6 without brackets).
    ///   - port: The port of the URL. Transfers to other ports continue, because their paths may be different.
    package func restartStalled(to host: String, port: Int) {
        engine.restartStalled(to: host, port: port, of: id)
    }

    /// Ends the transfers that wait for a response over a connection to a peer. Use this when there is no network path
    /// to the peer any more.
    ///
    /// They fail with code 56 (`CURLE_RECV_ERROR`). Transfers whose response has begun continue. So do transfers that
    /// are bound to an interface, because they may have another path.
    package func endUnanswered(by peer: ConnectionPeer) {
        engine.endUnanswered(by: peer, of: id)
    }

    /// Makes later transfers use new connections, and resolves their host names again, even if a lookup of the same
    /// name is already running (``NameResolver/renew()``). Running transfers keep their connections.
    ///
    /// Use this when the network path has changed.
    package func renewConnections() {
        engine.renewConnections(of: id)
    }
}

/// The multi handles of an engine. Transfers that may share connections share a handle.
///
/// A handle is retired when the connections of its pool are renewed or dropped, or when the pool is released. A retired
/// handle gets no new transfers, and is closed after its last transfer has ended.
struct MultiTable {
    typealias ID = Int

    /// The properties that transfers must have in common to share connections, and so a multi handle.
    struct Sharing: Hashable {
        let pool: TransferPool.ID
        let trust: TransferTrust
        /// The transfer, if it is bound to an interface or address; `nil` if not. A bound transfer gets a separate
        /// handle, because no other transfer may use its connection.
        let boundTransfer: TransferID?
        /// Whether all connections use HTTP/1.1, because the request requires it or because of ``HTTP1Origins``. With
        /// a common handle, libcurl might select an open HTTP/2 connection.
        let usesHTTP1: Bool
        /// The generation of the pool's connections to which the handle belongs.
        fileprivate let generation: Int
    }

    private final class Multi {
        let sharing: Sharing
        let handle: CurlMulti
        /// Whether the handle accepts new transfers.
        var isCurrent = true
        /// Whether the handle was idle at the last sweep and has had no transfer since.
        var isStale = false

        init(_ sharing: Sharing, _ handle: CurlMulti) {
            self.sharing = sharing
            self.handle = handle
        }
    }

    private var multis: [ID: Multi] = [:]
    /// The handles that accept new transfers.
    private var current: [Sharing: ID] = [:]
    private var newest: ID = 0
    /// The released pools that still had transfers at their release or at the last sweep.
    private var releasedPools: Set<TransferPool.ID> = []
    /// The number of times that the connections of each pool were renewed or dropped. Pools without an entry have 0.
    private var generations: [TransferPool.ID: Int] = [:]

    var count: Int { multis.count }

    subscript(id: ID) -> CurlMulti? { multis[id]?.handle }

    func sharing(
        _ pool: TransferPool.ID,
        _ trust: TransferTrust,
        boundTransfer: TransferID?,
        usesHTTP1: Bool
    ) -> Sharing {
        let generation = generations[pool] ?? 0
        return Sharing(
            pool: pool,
            trust: trust,
            boundTransfer: boundTransfer,
            usesHTTP1: usesHTTP1,
            generation: generation
        )
    }

    /// Returns the handle for a transfer that is about to be added. Creates the handle if there is none.
    mutating func handle(
        for sharing: Sharing,
        make: (ID) throws(TransferFailure) -> CurlMulti
    ) throws(TransferFailure) -> (id: ID, handle: CurlMulti) {
        if let id = current[sharing], let multi = multis[id] {
            multi.isStale = false
            return (id, multi.handle)
        }
        newest += 1
        let handle = try make(newest)
        multis[newest] = Multi(sharing, handle)
        current[sharing] = newest
        return (newest, handle)
    }

    /// Returns the handle that a transfer has had since it began, and that it is about to be added to; `nil` if the
    /// handle is closed.
    func handle(again id: ID) -> CurlMulti? {
        guard let multi = multis[id] else { return nil }
        multi.isStale = false
        return multi.handle
    }

    /// Returns whether a handle accepts new transfers.
    func isCurrent(_ id: ID) -> Bool { multis[id]?.isCurrent ?? false }

    /// Retires the handles of a pool.
    mutating func retire(_ pool: TransferPool.ID) {
        generations[pool, default: 0] += 1
        for (id, multi) in multis where multi.sharing.pool == pool {
            if multi.isCurrent { current[multi.sharing] = nil }
            multi.isCurrent = false
            closeIfDone(id)
        }
    }

    /// Retires the handles of a released pool.
    ///
    /// - Parameter hasTransfers: Whether the pool still has waiting or running transfers.
    mutating func forget(_ pool: TransferPool.ID, hasTransfers: Bool) {
        retire(pool)
        generations[pool] = nil
        if hasTransfers { releasedPools.insert(pool) }
    }

    /// Closes a handle if it has no transfers and will get no new ones.
    mutating func closeIfDone(_ id: ID) {
        guard let multi = multis[id], multi.handle.isIdle else { return }
        let isBound = multi.sharing.boundTransfer != nil
        if !multi.isCurrent || isBound || releasedPools.contains(multi.sharing.pool) { close(id) }
    }

    /// Closes the handles that have had no transfer since the last sweep. Trims the others.
    mutating func sweep(hasTransfers: (TransferPool.ID) -> Bool) {
        releasedPools = releasedPools.filter(hasTransfers)
        for (id, multi) in multis {
            multi.handle.trim()
            guard multi.handle.isIdle else { continue }
            if multi.isStale { close(id) } else { multi.isStale = true }
        }
    }

    /// Closes all handles and ends their transfers.
    mutating func closeAll() {
        for id in multis.keys { close(id) }
    }

    private mutating func close(_ id: ID) {
        guard let multi = multis.removeValue(forKey: id) else { return }
        if multi.isCurrent { current[multi.sharing] = nil }
        multi.handle.end()
    }
}

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

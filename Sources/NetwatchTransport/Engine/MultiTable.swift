/// The multi handles of an engine, each for the transfers that may share connections.
///
/// A handle is retired when its pool's connections were renewed, or the pool is gone: it serves the transfers that it
/// has, and is closed with the last of them.
struct MultiTable {
    typealias ID = Int

    /// What transfers must have in common to share connections, and a multi handle.
    struct Sharing: Hashable {
        let pool: TransferPool.ID
        let trust: TransferTrust
        /// Set for one that is tied to a way: no other may take its connection, nor the address it went to.
        let boundTransfer: TransferID?
        /// How often the pool's connections had been renewed.
        fileprivate let generation: Int
    }

    private struct Multi {
        let sharing: Sharing
        let handle: CurlMulti
        /// Whether it was without transfers at the last sweep and since.
        var isStale = false
    }

    private var multis: [ID: Multi] = [:]
    /// Those that new transfers may have.
    private var current: [Sharing: ID] = [:]
    private var newest: ID = 0
    /// Pools that are gone, while transfers of theirs are not.
    private var gonePools: Set<TransferPool.ID> = []
    /// How often a pool's connections were renewed, if ever.
    private var generations: [TransferPool.ID: Int] = [:]

    var count: Int { multis.count }

    subscript(id: ID) -> CurlMulti? { multis[id]?.handle }

    func sharing(
        _ pool: TransferPool.ID,
        _ trust: TransferTrust,
        boundTransfer: TransferID?
    ) -> Sharing {
        Sharing(pool: pool, trust: trust, boundTransfer: boundTransfer, generation: generations[pool] ?? 0)
    }

    /// The handle for a transfer that is about to be added to it.
    mutating func handle(
        for sharing: Sharing,
        make: (ID) throws(TransferFailure) -> CurlMulti
    ) throws(TransferFailure) -> (id: ID, handle: CurlMulti) {
        if let id = current[sharing], let multi = multis[id] {
            multis[id]?.isStale = false
            return (id, multi.handle)
        }
        newest += 1
        let handle = try make(newest)
        multis[newest] = Multi(sharing: sharing, handle: handle)
        current[sharing] = newest
        return (newest, handle)
    }

    /// No new transfer of a pool gets one of its handles any more.
    mutating func retire(_ pool: TransferPool.ID) {
        generations[pool, default: 0] += 1
        for (id, multi) in multis where multi.sharing.pool == pool {
            current[multi.sharing] = nil
            closeIfDone(id)
        }
    }

    /// - Parameter hasTransfers: Whether some are still to come, or under way.
    mutating func forget(_ pool: TransferPool.ID, hasTransfers: Bool) {
        retire(pool)
        generations[pool] = nil
        if hasTransfers { gonePools.insert(pool) }
    }

    /// Closes a handle if it has no transfer and is to get none.
    mutating func closeIfDone(_ id: ID) {
        guard let multi = multis[id], multi.handle.isIdle else { return }
        let isCurrent = current[multi.sharing] == id
        let isBound = multi.sharing.boundTransfer != nil
        if !isCurrent || isBound || gonePools.contains(multi.sharing.pool) { close(id) }
    }

    /// Closes the handles that have had no transfer since the last time, and what others do not need any more.
    mutating func sweep(hasTransfers: (TransferPool.ID) -> Bool) {
        gonePools = gonePools.filter(hasTransfers)
        for (id, multi) in multis {
            multi.handle.forgetBurst()
            guard multi.handle.isIdle else { continue }
            if multi.isStale { close(id) } else { multis[id]?.isStale = true }
        }
    }

    /// Closes all of them, with the transfers that they have.
    mutating func closeAll() {
        for id in multis.keys { close(id) }
    }

    private mutating func close(_ id: ID) {
        guard let multi = multis.removeValue(forKey: id) else { return }
        if current[multi.sharing] == id { current[multi.sharing] = nil }
        multi.handle.end()
    }
}

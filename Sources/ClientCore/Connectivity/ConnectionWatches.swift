internal import Dispatch
internal import NetwatchEventLoop
internal import NetworkReachability
internal import Synchronization

/// Watches the network paths of a session's connections, and renews the connections when a path changes. A
/// connection from a local address that is gone appears alive until something is sent over it.
///
/// Only new connections are recorded, so a request over an existing one has no cost here. Connections to this
/// machine need no network and are not watched.
final class ConnectionWatches: Sendable {
    fileprivate struct Entry {
        let id: UInt64
        var watch: PathWatch?
        /// The generation of the path when last seen; `nil` before the first status. `isReachable` is the last
        /// reachability.
        var generation: UInt64?
        var isReachable = false
    }

    fileprivate struct State {
        var entries: [String: Entry] = [:]
        /// The addresses, the least recently recorded first.
        var order: [String] = []
        var lastID: UInt64 = 0
    }

    /// The maximum number of watched addresses; a session rarely has connections to more. Connections to other
    /// addresses end by the idle timeout when their path has changed.
    static let limit = 64

    private let paths: SessionPaths
    private let renew: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter renew: Makes later requests use new connections. Called on the monitor's thread, which it
    ///   must not block.
    init(_ paths: SessionPaths, renew: @escaping @Sendable () -> Void) {
        self.paths = paths
        self.renew = renew
    }

    /// The watched addresses.
    var addresses: [String] { state.withLock { $0.order } }

    /// The path generations of the addresses whose status is known.
    var generations: [String: UInt64] { state.withLock { $0.entries.compactMapValues(\.generation) } }

    /// Records a connection to an address. Returns whether it is the only watched address now.
    func record(_ address: String) -> Bool {
        guard let parsed = IPAddress(address), !parsed.isLoopback, let host = NetworkHost(address) else {
            return false
        }
        let (id, dropped, count) = state.withLock { state in
            let (id, dropped) = state.record(address)
            return (id, dropped, state.entries.count)
        }
        dropped?.cancel()
        guard let id else { return false }
        paths.withMonitor { [weak self] monitor in self?.watch(host, address, id, monitor) }
        return count == 1
    }

    /// Ends all watches, because no connections are left.
    func endAll() {
        let entries = state.withLock { state in
            defer { state = State(lastID: state.lastID) }
            return state.entries
        }
        for entry in entries.values { entry.watch?.cancel() }
    }

    private func watch(_ host: NetworkHost, _ address: String, _ id: UInt64, _ monitor: PathMonitor) {
        let watch = monitor.watch(.host(host)) { [weak self] in self?.update(address, id, $0) }
        let isWanted = state.withLock { state in
            guard state.entries[address]?.id == id else { return false }
            state.entries[address]?.watch = watch
            return true
        }
        if !isWanted { watch.cancel() }
    }

    private func update(_ address: String, _ id: UInt64, _ status: PathStatus) {
        let hasChanged = state.withLock { $0.update(address, id, status) }
        if hasChanged { renew() }
    }
}

extension ConnectionWatches.State {
    /// Returns the id of a new entry, and the watch of the entry that it evicts.
    fileprivate mutating func record(_ address: String) -> (id: UInt64?, dropped: PathWatch?) {
        order.removeAll { $0 == address }
        order.append(address)
        guard entries[address] == nil else { return (nil, nil) }
        lastID += 1
        entries[address] = .init(id: lastID)
        guard order.count > ConnectionWatches.limit else { return (lastID, nil) }
        return (lastID, entries.removeValue(forKey: order.removeFirst())?.watch)
    }

    /// Returns whether connections to the address may be dead.
    ///
    /// They may be if the path has another generation, which means another route. They also count as dead as
    /// soon as the path is lost, so that a request that waits for the path never reuses an old connection.
    fileprivate mutating func update(_ address: String, _ id: UInt64, _ status: PathStatus) -> Bool {
        guard var entry = entries[address], entry.id == id else { return false }
        let isFirst = entry.generation == nil
        let isAnother = entry.generation != status.pathGeneration
        let isLost = entry.isReachable && !status.isReachable
        entry.generation = status.pathGeneration
        entry.isReachable = status.isReachable
        entries[address] = entry
        return !isFirst && (isAnother || isLost)
    }
}

internal import Dispatch
internal import NetwatchEventLoop
internal import NetworkReachability

/// Watches the network paths to the addresses that a session is connected to. When a path changes, later requests
/// use new connections.
///
/// An old connection may be dead: if its local address is gone, it looks alive until something is sent over it.
///
/// Only new connections are recorded, so a request over an existing connection needs no work here. Connections to
/// this machine need no network and are not watched.
final class ConnectionWatches: Sendable {
    fileprivate struct Entry {
        let id: UInt64
        var watch: PathWatch?
        /// The path generation of the last status; `nil` before the first status.
        var generation: UInt64?
        /// Whether the last status was reachable.
        var isReachable = false
    }

    fileprivate struct State {
        var entries: [String: Entry] = [:]
        /// The watched addresses, the least recently recorded first.
        var order: [String] = []
        var lastID: UInt64 = 0
    }

    /// The maximum number of watched addresses. A session rarely has connections to more. If the path to an
    /// unwatched address changes, requests over its connections fail only when their idle timeout expires.
    static let limit = 64

    private let paths: SessionPaths
    private let renew: @Sendable () -> Void
    private let state = Lock(State())

    /// - Parameters:
    ///   - paths: The session's path monitor.
    ///   - renew: Makes later requests use new connections. Called on the monitor's thread, which it must not block.
    init(_ paths: SessionPaths, renew: @escaping @Sendable () -> Void) {
        self.paths = paths
        self.renew = renew
    }

    /// The watched addresses.
    var addresses: [String] { state.withLock { $0.order } }

    /// The path generations of the addresses whose status is known.
    var generations: [String: UInt64] { state.withLock { $0.entries.compactMapValues(\.generation) } }

    /// Records a connection to an address, and watches the address if it is new. Returns whether the address is new and
    /// the only watched one.
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

    /// Ends all watches. Called when the session has no connections left.
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
    /// Moves the address to the end of the order, and adds an entry if it has none.
    ///
    /// - Returns: The id of the new entry, if one was added, and the watch of the entry evicted for it.
    fileprivate mutating func record(_ address: String) -> (id: UInt64?, dropped: PathWatch?) {
        order.removeAll { $0 == address }
        order.append(address)
        guard entries[address] == nil else { return (nil, nil) }
        lastID += 1
        entries[address] = .init(id: lastID)
        guard order.count > ConnectionWatches.limit else { return (lastID, nil) }
        return (lastID, entries.removeValue(forKey: order.removeFirst())?.watch)
    }

    /// Stores the status of an address. Returns true if connections to the address may be dead, for one of these
    /// reasons:
    ///
    /// - The path has a new generation, which means a different route.
    /// - The path is lost. A request that waits for the path must not reuse an old connection afterwards.
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

internal import Dispatch
internal import NetwatchEventLoop
internal import NetworkReachability
internal import Synchronization

/// Watches the ways that a session's connections have taken, and has them renewed when one of them has
/// changed: a connection from an address that is gone looks alive until something is sent over it.
///
/// Only new connections are noted; a request over an old one costs nothing here. Connections to this machine
/// need no network.
final class ConnectionWatches: Sendable {
    fileprivate struct Entry {
        let id: UInt64
        var watch: PathWatch?
        /// The generation of the way when it was first seen, and whether there was one when it was last.
        var generation: UInt64?
        var isReachable = false
    }

    fileprivate struct State {
        var entries: [String: Entry] = [:]
        /// Addresses from the one that was noted longest ago.
        var order: [String] = []
        var lastID: UInt64 = 0
    }

    /// How many addresses are watched: as many as a session has connections to, as a rule. Connections to others
    /// end by the idle timeout when their way has changed.
    static let limit = 64

    private let paths: SessionPaths
    private let renew: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter renew: Makes requests from now on use new connections. Called on the monitor's thread, which it
    ///   must not block.
    init(_ paths: SessionPaths, renew: @escaping @Sendable () -> Void) {
        self.paths = paths
        self.renew = renew
    }

    /// The addresses that are watched.
    var addresses: [String] { state.withLock { $0.order } }

    /// Those of them whose way was seen, with its generation.
    var generations: [String: UInt64] { state.withLock { $0.entries.compactMapValues(\.generation) } }

    /// A connection was made to an address. Returns whether it is the only one that is watched now.
    func note(_ address: String) -> Bool {
        guard let parsed = IPAddress(address), !parsed.isLoopback, let host = NetworkHost(address) else {
            return false
        }
        let (id, dropped, count) = state.withLock { state in
            let (id, dropped) = state.note(address)
            return (id, dropped, state.entries.count)
        }
        dropped?.cancel()
        guard let id else { return false }
        paths.withMonitor { [weak self] monitor in self?.watch(host, address, id, monitor) }
        return count == 1
    }

    /// Ends all watches: nothing is left that they could be about.
    func letGo() {
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
    /// Returns the number of a new entry, and the watch that it takes the place of.
    fileprivate mutating func note(_ address: String) -> (id: UInt64?, dropped: PathWatch?) {
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
    /// They are when another way was found, which counts as another generation; and already when there is none, so
    /// that what waits for the way to come back never meets a connection from before.
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

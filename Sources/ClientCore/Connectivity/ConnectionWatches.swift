internal import Dispatch
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import NetworkReachability

/// Watches the network paths to the peers that a session is connected to.
///
/// - When a path changes, later requests use new connections. An old connection may be dead: if its local address is
///   gone, it looks alive until something is sent over it.
/// - When a path is lost and does not return within the grace time, requests without a response end. The kernel reports
///   a missing route only to new connections, and would repeat lost packets for minutes.
///
/// A path counts as lost only if it was reachable before. If the monitor finds no path to a peer that has just accepted
/// a connection, it does not know a property by which the kernel routes, for example a mark set by a firewall.
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
        /// Whether any status so far was reachable.
        var wasReachable = false
        /// Whether the last status was not reachable.
        var isLost = false
        /// The number of times that the path was lost.
        var losses: UInt64 = 0
    }

    /// What a status means for the connections to its peer.
    fileprivate struct Effect {
        /// Whether the connections may be dead.
        var renews = false
        /// The number of the loss that the status reports; `nil` if the path was not lost.
        var loss: UInt64?
    }

    fileprivate struct State {
        var entries: [ConnectionPeer: Entry] = [:]
        /// The watched peers, the least recently recorded first.
        var order: [ConnectionPeer] = []
        var lastID: UInt64 = 0
    }

    /// The maximum number of watched peers. A session rarely has connections to more. If the path to an unwatched peer
    /// changes, requests over its connections fail only when their idle timeout expires.
    static let limit = 64

    /// The time after the loss of a path in which it may return without an effect on running requests: 3 s. That is
    /// longer than a roaming between access points or a new DHCP lease takes. The queue waits as long.
    static let lossGrace: Duration = .seconds(3)

    /// A function that calls a closure after a delay.
    typealias Timer = @Sendable (Duration, _ body: @escaping @Sendable () -> Void) -> Void

    private let paths: SessionPaths
    private let timer: Timer
    private let renew: @Sendable () -> Void
    private let endUnanswered: @Sendable (ConnectionPeer) -> Void
    private let state = Lock(State())

    /// - Parameters:
    ///   - paths: The session's path monitor.
    ///   - timer: Starts the grace time after a loss. Tests replace it.
    ///   - renew: Makes later requests use new connections. Called on the monitor's thread, which it must not block.
    ///   - endUnanswered: Ends the requests that wait for a response from a peer. Called on the monitor's thread.
    init(
        _ paths: SessionPaths,
        timer: @escaping Timer = { delay, body in
            DispatchQueue.global(qos: .utility).asyncAfter(
                deadline: .now() + delay.inSeconds,
                execute: body
            )
        },
        renew: @escaping @Sendable () -> Void,
        endUnanswered: @escaping @Sendable (ConnectionPeer) -> Void
    ) {
        self.paths = paths
        self.timer = timer
        self.renew = renew
        self.endUnanswered = endUnanswered
    }

    /// The watched peers.
    var peers: [ConnectionPeer] { state.withLock { $0.order } }

    /// The path generations of the peers whose status is known.
    var generations: [ConnectionPeer: UInt64] { state.withLock { $0.entries.compactMapValues(\.generation) } }

    /// Records a connection to a peer, and watches the peer if it is new. Returns whether the peer is new and the only
    /// watched one.
    func record(_ peer: ConnectionPeer) -> Bool {
        guard !peer.address.isLoopback, let host = NetworkHost(peer.address.description) else { return false }
        let (id, dropped, count) = state.withLock { state in
            let (id, dropped) = state.record(peer)
            return (id, dropped, state.entries.count)
        }
        dropped?.cancel()
        guard let id else { return false }
        paths.withMonitor { [weak self] monitor in self?.watch(host, peer, id, monitor) }
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

    private func watch(_ host: NetworkHost, _ peer: ConnectionPeer, _ id: UInt64, _ monitor: PathMonitor) {
        var options = PathOptions()
        options.port = peer.port
        let watch = monitor.watch(.host(host), options: options) { [weak self] in self?.update(peer, id, $0) }
        let isWanted = state.withLock { state in
            guard state.entries[peer]?.id == id else { return false }
            state.entries[peer]?.watch = watch
            return true
        }
        if !isWanted { watch.cancel() }
    }

    private func update(_ peer: ConnectionPeer, _ id: UInt64, _ status: PathStatus) {
        let effect = state.withLock { $0.update(peer, id, status) }
        if effect.renews { renew() }
        if let loss = effect.loss { endUnanswered(by: peer, ifStillLost: loss, id) }
    }

    /// Ends the requests without a response after the grace time, unless the path has returned by then.
    private func endUnanswered(by peer: ConnectionPeer, ifStillLost loss: UInt64, _ id: UInt64) {
        timer(Self.lossGrace) { [weak self] in
            guard let self else { return }
            let isLost = state.withLock { state in
                guard let entry = state.entries[peer] else { return false }
                return entry.id == id && entry.isLost && entry.losses == loss
            }
            guard isLost else { return }
            // If the process was stopped during the grace time, the path may have returned without a status so far.
            paths.evaluate(.host([peer.address], port: peer.port)) { [weak self] verdict in
                if verdict.isOffline != false { self?.endUnanswered(peer) }
            }
        }
    }
}

extension ConnectionWatches.State {
    /// Moves the peer to the end of the order, and adds an entry if it has none.
    ///
    /// - Returns: The id of the new entry, if one was added, and the watch of the entry evicted for it.
    fileprivate mutating func record(_ peer: ConnectionPeer) -> (id: UInt64?, dropped: PathWatch?) {
        order.removeAll { $0 == peer }
        order.append(peer)
        guard entries[peer] == nil else { return (nil, nil) }
        lastID += 1
        entries[peer] = .init(id: lastID)
        guard order.count > ConnectionWatches.limit else { return (lastID, nil) }
        return (lastID, entries.removeValue(forKey: order.removeFirst())?.watch)
    }

    /// Stores the status of a peer. Connections to the peer may be dead for one of these reasons:
    ///
    /// - The path has a new generation, which means a different route.
    /// - The path is lost. A request that waits for the path must not reuse an old connection afterwards.
    fileprivate mutating func update(
        _ peer: ConnectionPeer,
        _ id: UInt64,
        _ status: PathStatus
    ) -> ConnectionWatches.Effect {
        guard var entry = entries[peer], entry.id == id else { return .init() }
        let isFirst = entry.generation == nil
        let isAnother = entry.generation != status.pathGeneration
        let renews = !isFirst && (isAnother || entry.isReachable && !status.isReachable)
        let wasLost = entry.isLost
        entry.generation = status.pathGeneration
        entry.isReachable = status.isReachable
        entry.isLost = status.verdict.isOffline == true
        let isNewLoss = entry.isLost && !wasLost && entry.wasReachable
        if isNewLoss { entry.losses += 1 }
        entry.wasReachable = entry.wasReachable || status.isReachable
        entries[peer] = entry
        return .init(renews: renews, loss: isNewLoss ? entry.losses : nil)
    }
}

internal import Dispatch
internal import NetwatchEventLoop
internal import NetworkReachability

/// Watches the network paths to the addresses that a session is connected to.
///
/// - When a path changes, later requests use new connections. An old connection may be dead: if its local address is
///   gone, it looks alive until something is sent over it.
/// - When a path is lost and does not return within the grace time, requests without a response end. The kernel reports
///   a missing route only to new connections, and would repeat lost packets for minutes.
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
        /// Whether the last status was not reachable.
        var isLost = false
        /// The number of times that the path was lost.
        var losses: UInt64 = 0
    }

    /// What a status means for the connections to its address.
    fileprivate struct Effect {
        /// Whether the connections may be dead.
        var renews = false
        /// The number of the loss that the status reports; `nil` if the path was not lost.
        var loss: UInt64?
    }

    fileprivate struct State {
        var entries: [IPAddress: Entry] = [:]
        /// The watched addresses, the least recently recorded first.
        var order: [IPAddress] = []
        var lastID: UInt64 = 0
    }

    /// The maximum number of watched addresses. A session rarely has connections to more. If the path to an
    /// unwatched address changes, requests over its connections fail only when their idle timeout expires.
    static let limit = 64

    /// The time after the loss of a path in which it may return without an effect on running requests: 3 s. That is
    /// longer than a roaming between access points or a new DHCP lease takes. The queue waits as long.
    static let lossGrace: Duration = .seconds(3)

    /// A function that calls a closure after a delay.
    typealias Timer = @Sendable (Duration, _ body: @escaping @Sendable () -> Void) -> Void

    private let paths: SessionPaths
    private let timer: Timer
    private let renew: @Sendable () -> Void
    private let endUnanswered: @Sendable (IPAddress) -> Void
    private let state = Lock(State())

    /// - Parameters:
    ///   - paths: The session's path monitor.
    ///   - timer: Starts the grace time after a loss. Tests replace it.
    ///   - renew: Makes later requests use new connections. Called on the monitor's thread, which it must not block.
    ///   - endUnanswered: Ends the requests that wait for a response from an address.
    init(
        _ paths: SessionPaths,
        timer: @escaping Timer = { delay, body in
            DispatchQueue.global(qos: .utility).asyncAfter(
                deadline: .now() + delay.inSeconds,
                execute: body
            )
        },
        renew: @escaping @Sendable () -> Void,
        endUnanswered: @escaping @Sendable (IPAddress) -> Void
    ) {
        self.paths = paths
        self.timer = timer
        self.renew = renew
        self.endUnanswered = endUnanswered
    }

    /// The watched addresses.
    var addresses: [IPAddress] { state.withLock { $0.order } }

    /// The path generations of the addresses whose status is known.
    var generations: [IPAddress: UInt64] { state.withLock { $0.entries.compactMapValues(\.generation) } }

    /// Records a connection to an address, and watches the address if it is new. Returns whether the address is new and
    /// the only watched one.
    func record(_ address: IPAddress) -> Bool {
        guard !address.isLoopback, let host = NetworkHost(address.description) else { return false }
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

    private func watch(_ host: NetworkHost, _ address: IPAddress, _ id: UInt64, _ monitor: PathMonitor) {
        let watch = monitor.watch(.host(host)) { [weak self] in self?.update(address, id, $0) }
        let isWanted = state.withLock { state in
            guard state.entries[address]?.id == id else { return false }
            state.entries[address]?.watch = watch
            return true
        }
        if !isWanted { watch.cancel() }
    }

    private func update(_ address: IPAddress, _ id: UInt64, _ status: PathStatus) {
        let effect = state.withLock { $0.update(address, id, status) }
        if effect.renews { renew() }
        if let loss = effect.loss { endUnanswered(address, ifStillLost: loss, id) }
    }

    /// Ends the requests without a response after the grace time, unless the path has returned by then.
    private func endUnanswered(_ address: IPAddress, ifStillLost loss: UInt64, _ id: UInt64) {
        timer(Self.lossGrace) { [weak self] in
            guard let self else { return }
            let isLost = state.withLock { state in
                guard let entry = state.entries[address] else { return false }
                return entry.id == id && entry.isLost && entry.losses == loss
            }
            if isLost { endUnanswered(address) }
        }
    }
}

extension ConnectionWatches.State {
    /// Moves the address to the end of the order, and adds an entry if it has none.
    ///
    /// - Returns: The id of the new entry, if one was added, and the watch of the entry evicted for it.
    fileprivate mutating func record(_ address: IPAddress) -> (id: UInt64?, dropped: PathWatch?) {
        order.removeAll { $0 == address }
        order.append(address)
        guard entries[address] == nil else { return (nil, nil) }
        lastID += 1
        entries[address] = .init(id: lastID)
        guard order.count > ConnectionWatches.limit else { return (lastID, nil) }
        return (lastID, entries.removeValue(forKey: order.removeFirst())?.watch)
    }

    /// Stores the status of an address. Connections to the address may be dead for one of these reasons:
    ///
    /// - The path has a new generation, which means a different route.
    /// - The path is lost. A request that waits for the path must not reuse an old connection afterwards.
    fileprivate mutating func update(
        _ address: IPAddress,
        _ id: UInt64,
        _ status: PathStatus
    ) -> ConnectionWatches.Effect {
        guard var entry = entries[address], entry.id == id else { return .init() }
        let isFirst = entry.generation == nil
        let isAnother = entry.generation != status.pathGeneration
        let renews = !isFirst && (isAnother || entry.isReachable && !status.isReachable)
        let wasLost = entry.isLost
        entry.generation = status.pathGeneration
        entry.isReachable = status.isReachable
        entry.isLost = status.verdict.isOffline == true
        let isNewLoss = entry.isLost && !wasLost
        if isNewLoss { entry.losses += 1 }
        entries[address] = entry
        return .init(renews: renews, loss: isNewLoss ? entry.losses : nil)
    }
}

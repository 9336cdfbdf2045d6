internal import NetwatchEventLoop

// Begins and ends the subscriptions to targets.
extension MonitorCore {
    func subscribe(_ subscriber: WatchedTarget.Subscriber, to key: WatchKey) {
        if let target = targets[key] {
            target.add(subscriber)
            if let published = target.hold.published { outbox.put(published, for: subscriber) }
            outbox.deliver()
        } else {
            begin(key, subscriber)
        }
    }

    private func begin(_ key: WatchKey, _ subscriber: WatchedTarget.Subscriber) {
        let now = self.now
        let hadAddresses = key.name.flatMap { names[$0] }?.resolution.addresses.isEmpty == false
        let name = names.add(key, now: now)
        let target = WatchedTarget(key, settle: configuration.settle, name: name, subscriber: subscriber)
        targets[key] = target
        switch key.target {
        case .general:
            assign(configuration.generalAddresses, to: target)
        case .host(let host):
            assign(host.knownAddresses ?? name?.resolution.addresses ?? [], to: target)
        }
        let earlier = hadAddresses ? [] : name.map { assignAddresses(of: $0, exceptTo: target) } ?? []
        if let name, !hadAddresses, !name.resolution.isInProgress { resolve(name) }
        refreshMarked(now: now)
        updateStatus(of: target, now: now)
        updateStatuses(of: earlier, now: now)
        finish()
    }

    func unsubscribe(_ id: UInt64, from key: WatchKey) {
        guard let target = targets[key] else { return }
        target.remove(id)
        guard target.subscribers.isEmpty, target !== general else { return }
        targets[key] = nil
        assign([], to: target)
        wakeUps.set(target, to: nil)
        if let name = target.name { names.remove(key, from: name) }
    }

    /// Returns the last published status. For a target without one, returns `unknown` with the reason `resolving`.
    func status(of key: WatchKey) -> PathStatus {
        let resolving = TargetVerdict(.unknown(.resolving))
        return targets[key]?.hold.published
            ?? PathStatus(target: key.target, verdict: resolving, pathGeneration: 0)
    }

    /// Replaces the addresses of a target.
    func assign(_ addresses: [IPAddress], to target: WatchedTarget) {
        self.addresses.assign(addresses, to: target, connection?.events, now: now)
    }
}

// Answers questions about the kernel's current state. The answers may report changes before the watches do, because
// some changes are held back from watches.
extension MonitorCore {
    /// Processes all pending kernel notifications, and then looks up the addresses. Does not start a watch.
    ///
    /// - Parameters:
    ///   - addresses: The addresses of one host. Only the first 64 are used. `nil` for ``PathTarget/general``.
    ///   - port: The TCP port to connect to. Default: `nil`, unknown.
    func verdictNow(on addresses: [IPAddress]?, port: UInt16? = nil) -> PathStatus.Verdict {
        receiveEvents()
        defer { finish() }
        if !staleInterfaces.isEmpty { readInterfaces() }
        guard let reader = connection?.reader else { return .unknown(.noNetlink) }
        let queried = addresses?.compactMap(\.hostAddress) ?? configuration.generalAddresses
        var options = PathOptions()
        options.port = port
        let sparse = SparseOptions(options)
        guard let verdicts = try? reader.lookUp(queried.prefix(Self.maxAddresses).map { ($0, sparse) })
        else {
            return .unknown(.lookupFailed)
        }
        return TargetVerdict(verdicts.map(\.verdict))?.verdict ?? .unknown(.lookupFailed)
    }

    /// Looks up the known addresses of a watched target again.
    ///
    /// For a name without known addresses this is the verdict on ``PathTarget/general``.
    ///
    /// - Parameter port: The port of the watch; `nil` if it has none.
    /// - Returns: The verdict, and the generation that a status would have now; `nil` if the target is not watched with
    ///   this port and otherwise the default options.
    func verdictNow(
        on target: PathTarget,
        port: UInt16? = nil
    ) -> (verdict: PathStatus.Verdict, generation: UInt64)? {
        var options = PathOptions()
        options.port = port
        guard let watched = targets[WatchKey(target: target, options: options)] else { return nil }
        let addresses = watched.slots.map { self.addresses.book.address(at: $0) }
        let verdict = addresses.isEmpty ? verdictNow(on: nil) : verdictNow(on: addresses, port: port)
        return (verdict, watched.hold.currentGeneration)
    }

    /// Returns the last known path to each reachable address of a target, in the resolver's order.
    func paths(to key: WatchKey) -> [NetworkPath] {
        (targets[key]?.slots ?? []).compactMap { addresses.book.verdict(at: $0)?.path }
    }

    /// The maximum number of addresses that are looked up. A client tries as many.
    private static let maxAddresses = ResolverTimes.maximumAddresses
}

/// Publishes the snapshots of a monitor to their subscribers. Confined to the monitor's thread.
///
/// A class, because a subscriber may add or remove subscribers while it receives a snapshot.
final class SnapshotPublisher {
    typealias Subscriber = @Sendable (NetworkSnapshot) -> Void

    private(set) var current: NetworkSnapshot
    private var isStale = true
    private var subscribers: [UInt64: Subscriber] = [:]

    init(general: PathStatus) {
        current = NetworkSnapshot(generation: 0, interfaces: [], general: general)
    }

    func subscribe(_ id: UInt64, _ deliver: @escaping Subscriber) {
        subscribers[id] = deliver
        deliver(current)
    }

    func unsubscribe(_ id: UInt64) {
        subscribers[id] = nil
    }

    /// Makes the next call of ``publishIfStale(_:)`` create a snapshot and compare it with the current one.
    func markStale() {
        isStale = true
    }

    /// Delivers a new snapshot to all subscribers if the snapshot is stale and anything has changed.
    ///
    /// - Parameter state: Returns the current interfaces and the status of the general target. Called only if the
    ///   snapshot is stale.
    func publishIfStale(_ state: () -> (interfaces: [NetworkInterface], general: PathStatus)) {
        guard isStale else { return }
        isStale = false
        let (interfaces, general) = state()
        let next = NetworkSnapshot(
            generation: current.generation + 1,
            interfaces: interfaces,
            general: general
        )
        guard !next.isSame(as: current) else { return }
        current = next
        for deliver in subscribers.values.map(\.self) { deliver(next) }
    }
}

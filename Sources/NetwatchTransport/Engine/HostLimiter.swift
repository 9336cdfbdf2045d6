internal import NetwatchEventLoop

/// A limit on the number of concurrent transfers per host. It does no I/O.
///
/// Transfers over the limit wait. Those with a higher priority begin first, and those with equal priority begin in the
/// order of their arrival. libcurl has a limit, too, but it ignores priorities and counts the waiting time as
/// connecting time.
final class HostLimiter {
    /// The scope of a limit: one host of one pool. It identifies a ``Host``.
    struct Key: Hashable {
        let pool: TransferPool.ID
        /// The scheme, host and port of the URL, or the path of the unix socket.
        let origin: String
        /// Whether the transfers require HTTP/1.1. They cannot use the HTTP/2 connection of other transfers to the
        /// host, so the capacity of that connection must not apply to them, and they need not wait for the handshake
        /// that shows whether the server offers HTTP/2. Default `false`.
        var requiresHTTP1 = false
    }

    /// The transfers to one host of one pool. A transfer keeps a reference to its host, because finding it by its key
    /// would hash the origin.
    final class Host {
        let key: Key
        /// The number of transfers that have begun and not ended.
        fileprivate var running = 0
        /// The maximum number of concurrent transfers without HTTP/2.
        fileprivate var limit: Int
        /// Whether no transfer may begin while another one runs, because that one is still connecting. Only its
        /// connection shows whether other transfers can share it.
        fileprivate var isProbing: Bool
        fileprivate var isMultiplexed = false
        fileprivate var waiting = PriorityQueue()

        fileprivate init(_ key: Key, limit: Int, isProbing: Bool) {
            self.key = key
            self.limit = limit
            self.isProbing = isProbing
        }

        fileprivate var capacity: Int {
            guard !isProbing else { return 1 }
            // One HTTP/2 connection carries many transfers.
            return isMultiplexed ? max(limit, ConnectionTable.streamsPerConnection) : limit
        }

        fileprivate var isUnused: Bool { running == 0 }

        /// Begins waiting transfers up to the limit, and returns them.
        fileprivate func startWaiting() -> [TransferID] {
            var started: [TransferID] = []
            while running < capacity, let next = waiting.popFirst() {
                running += 1
                started.append(next)
            }
            return started
        }
    }

    private var hosts: [Key: Host] = [:]

    /// Adds a transfer. Returns its host, and `true` if it may begin now, `false` if it waits.
    ///
    /// - Parameters:
    ///   - id: The transfer.
    ///   - key: The host and the pool.
    ///   - limit: The maximum number of concurrent transfers to the host. It replaces an earlier limit.
    ///   - priority: The priority among waiting transfers. Higher values begin first.
    ///   - probesFirst: Whether the first transfer runs alone until it is connected. Only its TLS handshake shows
    ///     whether other transfers can share its connection. libcurl's own option for this (`CURLOPT_PIPEWAIT`) is not
    ///     used: with it, no timeout applies to the waiting transfers, and if the host cannot be reached, they fail one
    ///     after another.
    func add(
        _ id: TransferID,
        to key: Key,
        limit: Int,
        priority: Float,
        probesFirst: Bool = false
    ) -> (host: Host, mayBegin: Bool) {
        let host = hosts[key] ?? Host(key, limit: limit, isProbing: probesFirst)
        if host.isUnused { hosts[key] = host }
        host.limit = limit
        guard host.running < host.capacity else {
            host.waiting.append(id, priority: priority)
            return (host, false)
        }
        host.running += 1
        return (host, true)
    }

    /// Records the end of a transfer that had begun. Returns the transfers that may begin now.
    func transferEnded(_ host: Host) -> [TransferID] {
        host.running -= 1
        // If the first transfer could not connect, all waiting transfers may try at the same time. So they do not fail
        // one after another.
        host.isProbing = false
        let started = host.startWaiting()
        if host.isUnused { hosts[host.key] = nil }
        return started
    }

    /// Ends the time in which only the first transfer runs: it is connected, or the program must decide about the
    /// server first. Returns the transfers that may begin now.
    func endProbing(_ host: Host) -> [TransferID] {
        guard host.isProbing else { return [] }
        host.isProbing = false
        return host.startWaiting()
    }

    /// Makes a transfer that had begun wait until a transfer to the same host is connected. At least one must be
    /// connecting.
    func waitForConnection(_ id: TransferID, of host: Host, priority: Float) {
        host.running -= 1
        host.isProbing = true
        host.waiting.append(id, priority: priority)
    }

    /// Removes a transfer that waits.
    func removeWaiting(_ id: TransferID, from host: Host) {
        host.waiting.remove(id)
    }

    /// Records that the host speaks HTTP/2, so that one connection carries many transfers. Returns the transfers that
    /// may begin now.
    func setMultiplexed(_ host: Host) -> [TransferID] {
        guard !host.isMultiplexed else { return [] }
        host.isMultiplexed = true
        return host.startWaiting()
    }

    /// Records that transfers to an origin no longer use HTTP/2, so that each one needs a connection again. Those that
    /// have begun continue.
    func endMultiplexing(to origin: String) {
        for host in hosts.values where host.key.origin == origin { host.isMultiplexed = false }
    }

    var isEmpty: Bool { hosts.isEmpty }

    /// Returns the number of entries in the queue of a host. It includes removed transfers whose entries are still
    /// there. For tests.
    func queueLength(_ host: Host) -> Int { host.waiting.count }
}

/// A queue of transfers, ordered by priority and then by arrival.
private struct PriorityQueue {
    /// The queues per priority, highest priority first.
    private var queues: [(priority: Float, queue: FIFOQueue<TransferID>)] = []
    private var present: Set<TransferID> = []
    private(set) var count = 0

    mutating func append(_ id: TransferID, priority: Float) {
        present.insert(id)
        count += 1
        let index = queues.firstIndex { $0.priority <= priority } ?? queues.endIndex
        if index == queues.endIndex || queues[index].priority != priority {
            queues.insert((priority, FIFOQueue()), at: index)
        }
        queues[index].queue.append(id)
    }

    /// Removes a transfer. Its entry is deleted later: when it reaches the front, or when most entries belong to
    /// removed transfers.
    mutating func remove(_ id: TransferID) {
        present.remove(id)
        guard count > 2 * present.count + 16 else { return }
        for index in queues.indices { queues[index].queue.keep { present.contains($0) } }
        queues.removeAll { $0.queue.isEmpty }
        count = present.count
    }

    mutating func popFirst() -> TransferID? {
        while !queues.isEmpty {
            guard let next = queues[0].queue.popFirst() else {
                queues.removeFirst()
                continue
            }
            count -= 1
            if present.remove(next) != nil { return next }
        }
        return nil
    }
}

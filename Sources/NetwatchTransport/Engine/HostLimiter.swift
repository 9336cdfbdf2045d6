internal import NetwatchEventLoop

/// Limits the number of concurrent transfers per host. Other transfers wait in the order of their priority, and with
/// equal priority in the order of their arrival.
///
/// A value without I/O. libcurl's own limits know no priorities, and libcurl counts waiting time as connecting time.
struct HostLimiter {
    /// The scope of a limit: one host of one pool.
    struct Key: Hashable {
        let pool: TransferPool.ID
        /// The scheme, host and port of the URL, or the path of the unix socket.
        let origin: String
    }

    private struct Host {
        /// The number of transfers that have started and not ended.
        var running = 0
        /// The maximum number of connections.
        var limit: Int
        /// Whether only one transfer may run: the first is not connected yet and has not ended. Only a connection shows
        /// whether others can share it.
        var isProbing: Bool
        var isMultiplexed = false
        var waiting = PriorityQueue()

        var capacity: Int {
            guard !isProbing else { return 1 }
            // One HTTP/2 connection carries many transfers.
            return isMultiplexed ? max(limit, ConnectionTable.streamsPerConnection) : limit
        }
    }

    private var hosts: [Key: Host] = [:]

    /// Adds a transfer. Returns whether it may start; otherwise it waits.
    ///
    /// - Parameter probesFirst: Whether the first transfer runs alone until it is connected, because only its handshake
    ///   shows whether others can share its connection. (libcurl's `CURLOPT_PIPEWAIT` observes no timeout meanwhile,
    ///   and makes the waiting transfers fail one after another.)
    mutating func add(
        _ id: TransferID,
        to key: Key,
        limit: Int,
        priority: Float,
        probesFirst: Bool = false
    ) -> Bool {
        var host = hosts.removeValue(forKey: key) ?? Host(limit: limit, isProbing: probesFirst)
        defer { hosts[key] = host }
        host.limit = limit
        guard host.running < host.capacity else {
            host.waiting.append(id, priority: priority)
            return false
        }
        host.running += 1
        return true
    }

    /// Records that a transfer which had started has ended. Returns the transfers that may start now.
    mutating func transferEnded(_ key: Key) -> [TransferID] {
        hosts[key]?.running -= 1
        // If the first transfer failed to connect, the others fail together, not one after another.
        hosts[key]?.isProbing = false
        return startWaiting(key)
    }

    /// Records that the first transfer is connected. Returns the transfers that may start now.
    mutating func transferConnected(_ key: Key) -> [TransferID] {
        guard hosts[key]?.isProbing == true else { return [] }
        hosts[key]?.isProbing = false
        return startWaiting(key)
    }

    /// Removes a transfer that waits.
    mutating func removeWaiting(_ id: TransferID, from key: Key) {
        hosts[key]?.waiting.remove(id)
    }

    /// Records that the host carries many transfers over one connection. Returns the transfers that may start now.
    mutating func setMultiplexed(_ key: Key) -> [TransferID] {
        guard hosts[key]?.isMultiplexed == false else { return [] }
        hosts[key]?.isMultiplexed = true
        return startWaiting(key)
    }

    var isEmpty: Bool { hosts.isEmpty }

    /// Returns the length of the queue, including the entries of removed transfers.
    func queueLength(_ key: Key) -> Int { hosts[key]?.waiting.count ?? 0 }

    private mutating func startWaiting(_ key: Key) -> [TransferID] {
        guard var host = hosts.removeValue(forKey: key) else { return [] }
        var started: [TransferID] = []
        while host.running < host.capacity, let next = host.waiting.popFirst() {
            host.running += 1
            started.append(next)
        }
        if host.running > 0 { hosts[key] = host }
        return started
    }
}

/// A queue of transfers in the order of their priority, then of their arrival.
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

    /// Removes a transfer. Its entry stays until it reaches the front, or until most entries belong to removed
    /// transfers.
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

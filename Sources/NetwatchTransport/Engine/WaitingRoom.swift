internal import NetwatchEventLoop

/// Limits the number of concurrent transfers per host. Other transfers wait in the order of their priority, and with
/// equal priority in the order of their arrival.
///
/// A value without I/O. libcurl's own limits know no priorities, and libcurl counts waiting time as connecting time.
struct WaitingRoom {
    /// The scope of a limit: one host of one pool.
    struct Door: Hashable {
        let pool: TransferPool.ID
        /// The scheme, host and port of the URL, or the path of the unix socket.
        let origin: String
    }

    private struct Line {
        var inside = 0
        /// The maximum number of connections.
        var limit: Int
        /// Whether more than one transfer may run. False until the first transfer is connected, when it is known
        /// whether others can share its connection, or has ended.
        var isOpen: Bool
        var isMultiplexed = false
        var waiting = UrgencyLine()

        var capacity: Int {
            guard isOpen else { return 1 }
            return isMultiplexed ? max(limit, WaitingRoom.streamsPerConnection) : limit
        }
    }

    /// The minimum limit for a host that carries many transfers over one connection. It is the number of streams that
    /// libcurl runs over one HTTP/2 connection (the default of `CURLMOPT_MAX_CONCURRENT_STREAMS`). If the server allows
    /// fewer, more connections are opened.
    static let streamsPerConnection = 100

    private var lines: [Door: Line] = [:]

    /// Adds a transfer. Returns whether it may begin; otherwise it waits.
    ///
    /// - Parameter needsScout: Whether the first transfer runs alone until it is connected, because only its handshake
    ///   shows whether others can share its connection. (libcurl's `CURLOPT_PIPEWAIT` observes no timeout meanwhile,
    ///   and makes the waiting transfers fail one after another.)
    mutating func enter(
        _ id: TransferID,
        by door: Door,
        limit: Int,
        priority: Float,
        needsScout: Bool = false
    ) -> Bool {
        var line = lines.removeValue(forKey: door) ?? Line(limit: limit, isOpen: !needsScout)
        defer { lines[door] = line }
        line.limit = limit
        guard line.inside < line.capacity else {
            line.waiting.append(id, priority: priority)
            return false
        }
        line.inside += 1
        return true
    }

    /// Removes a transfer that had begun and has ended. Returns the transfers that may begin now.
    mutating func leave(by door: Door) -> [TransferID] {
        lines[door]?.inside -= 1
        // If the first transfer failed to connect, the others fail together, not one after another.
        lines[door]?.isOpen = true
        return admit(by: door)
    }

    /// Records that the first transfer is connected. Returns the transfers that may begin now.
    mutating func open(_ door: Door) -> [TransferID] {
        guard lines[door]?.isOpen == false else { return [] }
        lines[door]?.isOpen = true
        return admit(by: door)
    }

    /// Removes a transfer that waited.
    mutating func giveUp(_ id: TransferID, by door: Door) {
        lines[door]?.waiting.remove(id)
    }

    /// Records that the host carries many transfers over one connection. Returns the transfers that may begin now.
    mutating func widen(_ door: Door) -> [TransferID] {
        guard lines[door]?.isMultiplexed == false else { return [] }
        lines[door]?.isMultiplexed = true
        return admit(by: door)
    }

    var isEmpty: Bool { lines.isEmpty }

    /// Returns the length of the queue, including the entries of removed transfers.
    func places(at door: Door) -> Int { lines[door]?.waiting.count ?? 0 }

    private mutating func admit(by door: Door) -> [TransferID] {
        guard var line = lines.removeValue(forKey: door) else { return [] }
        var admitted: [TransferID] = []
        while line.inside < line.capacity, let next = line.waiting.popFirst() {
            line.inside += 1
            admitted.append(next)
        }
        if line.inside > 0 { lines[door] = line }
        return admitted
    }
}

/// A queue of transfers in the order of their priority, then of their arrival.
private struct UrgencyLine {
    /// The queues per priority, highest priority first.
    private var lines: [(priority: Float, line: WaitingLine<TransferID>)] = []
    private var present: Set<TransferID> = []
    private(set) var count = 0

    mutating func append(_ id: TransferID, priority: Float) {
        present.insert(id)
        count += 1
        let index = lines.firstIndex { $0.priority <= priority } ?? lines.endIndex
        if index == lines.endIndex || lines[index].priority != priority {
            lines.insert((priority, WaitingLine()), at: index)
        }
        lines[index].line.append(id)
    }

    /// Removes a transfer. Its entry stays until it reaches the front, or until most entries belong to removed
    /// transfers.
    mutating func remove(_ id: TransferID) {
        present.remove(id)
        guard count > 2 * present.count + 16 else { return }
        for index in lines.indices { lines[index].line.keep { present.contains($0) } }
        lines.removeAll { $0.line.isEmpty }
        count = present.count
    }

    mutating func popFirst() -> TransferID? {
        while !lines.isEmpty {
            guard let next = lines[0].line.popFirst() else {
                lines.removeFirst()
                continue
            }
            count -= 1
            if present.remove(next) != nil { return next }
        }
        return nil
    }
}

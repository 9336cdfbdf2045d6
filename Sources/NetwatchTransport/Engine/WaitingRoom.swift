internal import NetwatchEventLoop

/// Lets transfers begin while there is room at their door, and the others wait: the more urgent ones in front, and
/// equal ones in the order in which they came.
///
/// A value without I/O. libcurl has limits of its own, but lets nobody pass who came late, and counts the time that
/// a transfer waits as time that it takes to connect.
struct WaitingRoom {
    /// Where transfers wait for each other: one host of one pool.
    struct Door: Hashable {
        let pool: TransferPool.ID
        /// As the URL has it: scheme, host and port.
        let origin: String
    }

    private struct Line {
        var inside = 0
        /// How many connections there may be.
        var limit: Int
        /// Whether it is known that there is a connection to be had, and one that others can share if there are such.
        var isOpen: Bool
        var isMultiplexed = false
        var waiting = UrgencyLine()

        var capacity: Int {
            guard isOpen else { return 1 }
            return isMultiplexed ? max(limit, WaitingRoom.streamsPerConnection) : limit
        }
    }

    /// How many transfers go at a time to a host that takes many over one connection, if there may not be as many
    /// connections: what libcurl lets one HTTP/2 connection carry (`CURLMOPT_MAX_CONCURRENT_STREAMS`, whose default this
    /// is). A server may allow fewer, and gets more connections then.
    static let streamsPerConnection = 100

    private var lines: [Door: Line] = [:]

    /// Returns whether the transfer may begin; otherwise it waits.
    ///
    /// - Parameter needsScout: Whether the first goes alone until it is connected, because only its handshake tells
    ///   whether the others can share its connection. (libcurl's `CURLOPT_PIPEWAIT` keeps no timeout meanwhile, and lets
    ///   them fail one after another.)
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

    /// A transfer that had begun has ended. Returns who may begin now.
    mutating func leave(by door: Door) -> [TransferID] {
        lines[door]?.inside -= 1
        // If it was a scout that found nothing out, the others fail together, not one after another.
        lines[door]?.isOpen = true
        return admit(by: door)
    }

    /// The first transfer is connected. Returns who may begin now.
    mutating func open(_ door: Door) -> [TransferID] {
        guard lines[door]?.isOpen == false else { return [] }
        lines[door]?.isOpen = true
        return admit(by: door)
    }

    /// A transfer that waited has ended.
    mutating func giveUp(_ id: TransferID, by door: Door) {
        lines[door]?.waiting.remove(id)
    }

    /// The host takes many transfers over one connection. Returns who may begin now.
    mutating func widen(_ door: Door) -> [TransferID] {
        guard lines[door]?.isMultiplexed == false else { return [] }
        lines[door]?.isMultiplexed = true
        return admit(by: door)
    }

    var isEmpty: Bool { lines.isEmpty }

    /// How many places a line keeps, empty ones included.
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

/// Transfers in the order of their urgency, and of their arrival.
private struct UrgencyLine {
    /// The most urgent first.
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

    /// Its place is given up when its turn comes, or when most places are empty.
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

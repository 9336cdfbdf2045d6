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
        var isMultiplexed = false
        var waiting = UrgencyLine()

        var capacity: Int { isMultiplexed ? limit * WaitingRoom.streamsPerConnection : limit }
    }

    /// How many transfers libcurl lets one HTTP/2 connection carry (`CURLMOPT_MAX_CONCURRENT_STREAMS`, whose default
    /// this is). A server may allow fewer.
    static let streamsPerConnection = 100

    private var lines: [Door: Line] = [:]

    /// Returns whether the transfer may begin; otherwise it waits.
    mutating func enter(_ id: TransferID, by door: Door, limit: Int, priority: Float) -> Bool {
        var line = lines.removeValue(forKey: door) ?? Line(limit: limit)
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

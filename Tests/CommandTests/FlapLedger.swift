/// What happened to the requests of a test that interrupts the network: which ones the queue accepted, and which ones
/// the server received.
///
/// The server applies a request when its idempotency key arrives for the first time, and ignores later arrivals of the
/// key. So a duplicate does no harm if it has the same key.
struct FlapLedger {
    /// A request. Its text form is its id and the path of its URL.
    struct Item: Hashable {
        let lane: FlapLane
        let number: Int

        var id: String { "\(lane.name)-\(number)" }

        init(lane: FlapLane, number: Int) {
            (self.lane, self.number) = (lane, number)
        }

        /// Parses an ``id``.
        init?(id: some StringProtocol) {
            let parts = id.split(separator: "-")
            guard parts.count == 3, let isFIFO = FlapLane.kinds[String(parts[0])], let lane = Int(parts[1]),
                let number = Int(parts[2])
            else { return nil }
            self.init(lane: FlapLane(isFIFO: isFIFO, number: lane), number: number)
        }
    }

    private var accepted: Set<Item> = []
    private var keys: [Item: Set<String>] = [:]
    /// The items of each lane in the order in which the server applied them.
    private var applied: [FlapLane: [Int]] = [:]
    private var owners: [String: Item] = [:]
    private(set) var arrivals = 0
    private(set) var unknown: [String] = []

    /// Records that the queue has accepted a request.
    mutating func accept(_ item: Item) { accepted.insert(item) }

    /// Records a request that arrived at the server.
    mutating func arrive(_ id: String, key: String?) {
        arrivals += 1
        guard let item = Item(id: id), let key else { return unknown.append(id) }
        keys[item, default: []].insert(key)
        guard owners[key] == nil else {
            if owners[key] != item { unknown.append(id) }
            return
        }
        owners[key] = item
        applied[item.lane, default: []].append(item.number)
    }

    var acceptedCount: Int { accepted.count }

    /// The number of requests that the server applied, at least once each.
    var appliedCount: Int { keys.count }

    /// The number of arrivals that the server ignored, because it had already applied their key.
    var duplicates: Int { arrivals - unknown.count - owners.count }

    /// Whether every accepted request has arrived.
    var isComplete: Bool { accepted.allSatisfy { keys[$0] != nil } }

    /// Descriptions of every broken promise of the queue.
    var violations: [String] {
        let lost = accepted.filter { keys[$0] == nil }.map { "\($0.id) was accepted and never arrived" }
        let invented = keys.keys.filter { !accepted.contains($0) }.map { "\($0.id) was never accepted" }
        let doubled = keys.filter { $0.value.count > 1 }.map {
            "\($0.key.id) arrived with \($0.value.count) keys"
        }
        let disordered = applied.filter { $0.key.isFIFO && $0.value != $0.value.sorted() }.map {
            "the lane \($0.key.name) was applied in the order \($0.value)"
        }
        return lost + invented + doubled + disordered
            + unknown.map { "\($0) arrived without a key of its own" }
    }
}

/// A lane of the requests, either in order or parallel.
struct FlapLane: Hashable {
    static let kinds = ["fifo": true, "parallel": false]

    let isFIFO: Bool
    let number: Int

    var name: String { "\(isFIFO ? "fifo" : "parallel")-\(number)" }

    /// Four lanes of each kind.
    static let all = [true, false].flatMap { isFIFO in
        (0..<4).map { FlapLane(isFIFO: isFIFO, number: $0) }
    }
}

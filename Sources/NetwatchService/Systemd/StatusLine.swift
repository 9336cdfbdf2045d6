internal import OfflineQueue

/// The state of the service in one line for people, which `systemctl status` shows.
struct StatusLine {
    let network: ControlMessage.Network
    /// The number of watched hosts in each state.
    let hosts: [String: Int]
    /// `nil` if the store cannot be read.
    let queue: QueueCounts?
    /// Whether the service uses its last good configuration, because it cannot use its files.
    var usesLastGood = false
    /// Whether a scan of the store has found damage.
    var isStoreDamaged = false
    /// Whether the queue refuses new requests, because its disk is full.
    var isDiskFull = false

    /// For example `network: reachable; hosts: 3 up, 1 down; queue: 4 waiting, 1 held`.
    var text: String {
        [
            networkText, hostText, queueText, usesLastGood ? "last good configuration" : nil,
            isStoreDamaged ? "damaged store" : nil, isDiskFull ? "full disk" : nil,
        ].compactMap(\.self).joined(separator: "; ")
    }

    private var networkText: String { "network: \(network.reason ?? network.state)" }

    private var hostText: String? {
        let counts = ["up", "degraded", "down", "unknown"].map { (hosts[$0, default: 0], $0) }
        return Self.list(counts).map { "hosts: \($0)" }
    }

    private var queueText: String? {
        queue.map { queue in
            let waiting = queue[.pending] + queue[.blocked] + queue[.inflight]
            return "queue: \(Self.list([(waiting, "waiting"), (queue[.held], "held")]) ?? "empty")"
        }
    }

    /// Returns the numbers that are not 0 with their names; `nil` if all are 0.
    private static func list(_ counts: [(Int, String)]) -> String? {
        let texts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }
}

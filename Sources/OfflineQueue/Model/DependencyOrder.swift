/// Detects dependency cycles among requests that are enqueued together.
///
/// In a FIFO lane, each request also waits for the request before it.
enum DependencyOrder {
    /// Checks that no request waits for itself through its dependencies.
    ///
    /// - Throws: ``QueueError`` with `cyclicDependency` and a message that names the requests of the cycle.
    static func check(_ requests: [NewRequest]) throws(QueueError) {
        guard requests.contains(where: { !$0.options.dependencies.isEmpty }) else { return }
        var open = waits(of: requests)
        // A request that waits for none of the remaining requests is not part of a cycle. What remains is cycles, and
        // requests that wait for them.
        while true {
            let free = open.filter { !$0.value.contains { open[$0] != nil } }.map(\.key)
            guard !free.isEmpty else { break }
            for id in free { open[id] = nil }
        }
        guard let first = open.keys.min() else { return }
        throw QueueError(.cyclicDependency, "dependency cycle: \(circle(from: first, open))")
    }

    /// Returns the ids of the requests that each request waits for, by the id of the waiting request.
    private static func waits(of requests: [NewRequest]) -> [String: [String]] {
        var (waits, last) = ([String: [String]](), [LaneKey: String]())
        for request in requests where waits[request.id] == nil {
            waits[request.id] = request.options.dependencies
            guard request.lane.mode == .fifo else { continue }
            if let before = last.updateValue(request.id, forKey: request.lane) {
                waits[request.id]!.append(before)
            }
        }
        return waits
    }

    private static func circle(from first: String, _ open: [String: [String]]) -> String {
        var path = [first]
        while let next = open[path.last!]?.first(where: { open[$0] != nil }) {
            if let start = path.firstIndex(of: next) {
                return (path[start...] + [next]).prefix(8).map(quoted).joined(separator: " → ")
            }
            path.append(next)
        }
        return quoted(first)
    }
}

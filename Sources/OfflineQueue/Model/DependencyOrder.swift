/// Requests that are enqueued together may depend on each other, but not in a circle.
enum DependencyOrder {
    /// - Throws: ``QueueError`` with `cyclicDependency`, naming the circle.
    static func check(_ requests: [NewRequest]) throws(QueueError) {
        guard requests.contains(where: { !$0.options.dependencies.isEmpty }) else { return }
        var open = Dictionary(requests.map { ($0.id, $0.options.dependencies) }) { first, _ in first }
        // What depends on nothing that is left is no part of a circle.
        while true {
            let free = open.filter { !$0.value.contains { open[$0] != nil } }.map(\.key)
            guard !free.isEmpty else { break }
            for id in free { open[id] = nil }
        }
        guard let first = open.keys.min() else { return }
        throw QueueError(.cyclicDependency, "these depend on each other: \(circle(from: first, open))")
    }

    private static func circle(from first: String, _ open: [String: [String]]) -> String {
        var path = [first]
        while let next = open[path.last!]?.first(where: { open[$0] != nil }) {
            if let start = path.firstIndex(of: next) {
                return (path[start...] + [next]).prefix(8).map(quoted).joined(separator: " on ")
            }
            path.append(next)
        }
        return quoted(first)
    }
}

/// The requests that wait for others, by their ids. It finds requests that would wait for each other forever.
///
/// Its memory grows with the requests that have dependencies or on which others depend: about 150 bytes for each, and 8
/// bytes for each dependency. Finding a cycle takes time in proportion to them.
struct DependencyGraph {
    private struct Node {
        let id: String
        var hasDependencies = false
        var isInLane = false
    }

    private var nodes: [Node] = []
    private var numbers: [String: Int32] = [:]
    /// Pairs of a waiting request and the one that it waits for.
    private var waits: [(waiting: Int32, other: Int32)] = []
    /// The last request of each FIFO lane.
    private var ends: [LaneKey: Int32] = [:]

    /// Whether no request has dependencies.
    var isEmpty: Bool { nodes.isEmpty }

    /// Adds the dependencies of a request. Later calls with the same id have no effect, because the queue does not
    /// store an id twice.
    mutating func add(_ id: String, waitsFor others: [String]) {
        guard !others.isEmpty else { return }
        let number = number(of: id)
        guard !nodes[Int(number)].hasDependencies else { return }
        nodes[Int(number)].hasDependencies = true
        for other in others { waits.append((number, self.number(of: other))) }
    }

    /// Adds the next request of a lane: in a FIFO lane, it waits for the request before it. Must be called after all
    /// dependencies are added. A request that has none, and on which none depends, cannot be part of a cycle and is not
    /// added.
    mutating func add(_ id: String, in lane: LaneKey) {
        guard lane.mode == .fifo, let number = numbers[id], !nodes[Int(number)].isInLane else { return }
        nodes[Int(number)].isInLane = true
        guard let before = ends.updateValue(number, forKey: lane) else { return }
        waits.append((number, before))
    }

    private mutating func number(of id: String) -> Int32 {
        if let known = numbers[id] { return known }
        let number = Int32(nodes.count)
        nodes.append(Node(id: id))
        numbers[id] = number
        return number
    }
}

// MARK: - Cycles

extension DependencyGraph {
    /// The maximum number of ids in the message of an error.
    private static let mostNames = 8

    /// Checks that no request that is enqueued in one call waits for itself.
    ///
    /// - Throws: ``QueueError`` with `cyclicDependency`, see ``check()``.
    static func check(_ requests: [NewRequest]) throws(QueueError) {
        var graph = DependencyGraph()
        for request in requests { graph.add(request.id, waitsFor: request.options.dependencies) }
        guard !graph.isEmpty else { return }
        for request in requests { graph.add(request.id, in: request.lane) }
        try graph.check()
    }

    /// Checks that no request waits for itself, directly or through others.
    ///
    /// - Throws: ``QueueError`` with `cyclicDependency` and a message that names the first requests of a cycle.
    func check() throws(QueueError) {
        guard let cycle = firstCycle() else { return }
        let names = cycle.prefix(Self.mostNames).map { quoted(nodes[Int($0)].id) }
        let rest = cycle.count > Self.mostNames ? ["…"] : []
        throw QueueError(.cyclicDependency, "dependency cycle: \((names + rest).joined(separator: " → "))")
    }

    /// Whether the search has not reached a request, is at it or at one that it waits for, or has left it.
    private enum Mark: UInt8 {
        case new, onPath, done
    }

    /// A request on the path of the search, and the index of its next dependency.
    private struct Step {
        let request: Int32
        var next: Int
    }

    /// Returns the requests of a cycle: each waits for the next one, and the last one is the first one again. `nil` if
    /// there is no cycle. The result does not depend on hash seeds.
    private func firstCycle() -> [Int32]? {
        let (starts, others) = dependencies()
        var marks = [Mark](repeating: .new, count: nodes.count)
        for first in nodes.indices.sorted(by: { nodes[$0].id < nodes[$1].id }) where marks[first] == .new {
            marks[first] = .onPath
            var path = [Step(request: Int32(first), next: starts[first])]
            while let step = path.last {
                let request = Int(step.request)
                guard step.next < starts[request + 1] else {
                    marks[request] = .done
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let other = others[step.next]
                switch marks[Int(other)] {
                case .done: break
                case .onPath: return Array(path.map(\.request).drop { $0 != other }) + [other]
                case .new:
                    marks[Int(other)] = .onPath
                    path.append(Step(request: other, next: starts[Int(other)]))
                }
            }
        }
        return nil
    }

    /// Returns the dependencies of all requests in one array, in the order in which they were added. Those of the
    /// request `n` begin at `starts[n]` and end before `starts[n + 1]`.
    private func dependencies() -> (starts: [Int], others: [Int32]) {
        var starts = [Int](repeating: 0, count: nodes.count + 1)
        for wait in waits { starts[Int(wait.waiting) + 1] += 1 }
        for index in nodes.indices { starts[index + 1] += starts[index] }
        var (places, others) = (starts, [Int32](repeating: 0, count: waits.count))
        for wait in waits {
            others[places[Int(wait.waiting)]] = wait.other
            places[Int(wait.waiting)] += 1
        }
        return (starts, others)
    }
}

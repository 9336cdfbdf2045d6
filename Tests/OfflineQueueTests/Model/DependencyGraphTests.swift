internal import Testing

@testable internal import OfflineQueue

/// The search for requests that would wait for each other.
@Suite struct DependencyGraphTests {
    private func lane(_ mode: LaneKey.Mode = .fifo, of submitter: UInt32? = nil) -> LaneKey {
        LaneKey(origin: Origin(scheme: "http", host: "a", port: 80), mode: mode, submitter: submitter)
    }

    private func message(_ graph: DependencyGraph) -> String? {
        do throws(QueueError) {
            try graph.check()
            return nil
        } catch {
            return error.message
        }
    }

    @Test func `a long chain is no cycle, and a long cycle is named by its first requests`() {
        var graph = DependencyGraph()
        let last = 50_000
        for number in 1...last { graph.add("r\(number)", waitsFor: ["r\(number - 1)"]) }
        #expect(message(graph) == nil)
        graph.add("r0", waitsFor: ["other", "r\(last)"])
        let names = ["r0"] + (0..<7).map { "r\(last - $0)" }
        let path = names.map { "`\($0)`" }.joined(separator: " → ")
        #expect(message(graph) == "dependency cycle: \(path) → …")
    }

    @Test func `only the first dependencies of an id count`() {
        var graph = DependencyGraph()
        graph.add("a", waitsFor: ["b"])
        graph.add("b", waitsFor: ["c"])
        graph.add("b", waitsFor: ["a"])
        #expect(message(graph) == nil)
        graph.add("c", waitsFor: ["c"])
        #expect(message(graph) == "dependency cycle: `c` → `c`")
    }

    @Test func `a request waits for those before it in its FIFO lane`() {
        let lanes: [(first: LaneKey, second: LaneKey, message: String?)] = [
            (lane(), lane(), "dependency cycle: `a` → `b` → `a`"), (lane(), lane(of: 7), nil),
            (lane(.parallel), lane(.parallel), nil),
        ]
        for (first, second, expected) in lanes {
            var graph = DependencyGraph()
            graph.add("a", waitsFor: ["b"])
            // `x` is not part of any dependency. A repeated id has no second place.
            for (id, lane) in [("a", first), ("x", first), ("b", second), ("a", first)] {
                graph.add(id, in: lane)
            }
            #expect(message(graph) == expected)
        }
    }
}

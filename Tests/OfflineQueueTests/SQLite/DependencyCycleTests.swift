internal import OfflineQueue
internal import Testing

/// Requests of an existing store that wait for each other.
@Suite(.timeLimit(.minutes(5))) struct DependencyCycleTests {
    private let directory = TemporaryDirectory()
    private let files = TemporaryDirectory()

    /// Stores `a`, `b` and `c`, each of which waits for the one before it, and makes `a` wait for `c`.
    private func writeCycle() async throws {
        try await withQueue(directory) { queue, _ in
            for (id, after) in [("a", []), ("b", ["a"]), ("c", ["b"])] as [(String, [String])] {
                try await queue.enqueue(id: id) { $0.dependencies = after }
            }
        }
        try edit(
            directory,
            """
            INSERT INTO depends (seq, on_seq) SELECT a.seq, c.seq FROM request AS a, request AS c
                WHERE a.id = 'a' AND c.id = 'c';
            UPDATE request SET state = 'blocked' WHERE id = 'a';
            """
        )
    }

    /// Imports an export, and expects that the cycle is broken at `a`.
    private func check(export path: String) async throws {
        try await withQueue(TemporaryDirectory()) { queue, _ in
            #expect(try await queue.importRequests(from: path).imported == 3)
            let held = try #require(try await queue.request("a"))
            #expect(held.summary.holdReason == .dependency && held.dependencies.isEmpty)
            #expect(held.summary.lastError == "depends on `c`, which also waits for this request")
            #expect(try await queue.request("c")?.summary.state == .blocked)
            #expect(try await queue.verify().isSound)
        }
    }

    @Test func `a cycle is found, and a retry of the request that is named ends it`() async throws {
        try await writeCycle()
        try await withQueue(directory) { queue, _ in
            let report = try await queue.verify()
            #expect(
                report.findings.map(\.description)
                    == ["dependency_cycle: a: waits for `c`, which also waits for it"]
            )
            #expect(!report.isSound && report.requests == 3)
            #expect(try await queue.retry(["a"]) == [.done(.pending)])
            #expect(try await queue.verify().findings.isEmpty)
        }
    }

    @Test func `a request that a replacement makes wait for a later one is no cycle`() async throws {
        try await withQueue(directory) { queue, _ in
            try await queue.enqueue(id: "old") { $0.replaceKey = "k" }
            try await queue.enqueue(id: "waits") { $0.dependencies = ["old"] }
            try await queue.enqueue(id: "new") { $0.replaceKey = "k" }
            #expect(try await queue.request("waits")?.dependencies == ["new"])
            #expect(try await queue.verify().isSound)
        }
    }

    @Test func `an export contains a request of a cycle without its dependencies, and can be imported`()
        async throws
    {
        try await writeCycle()
        let data = try await withQueue(directory) { queue, _ in try await queue.exported() }
        try await check(export: try file(data, in: files))
    }

    @Test func `so does the export of a store that is set aside`() async throws {
        try await writeCycle()
        let aside = try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        try await check(export: try #require(aside).salvage.path)
    }
}

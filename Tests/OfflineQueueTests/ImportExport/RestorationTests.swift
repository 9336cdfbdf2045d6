internal import Foundation
internal import NetwatchEventLoop
internal import OfflineQueue
internal import Testing

/// A thread-safe counter that returns `true` from ``take()`` a fixed number of times.
final class Counter: Sendable {
    private let left: Lock<Int>

    init(_ count: Int) { left = Lock(count) }

    func take() -> Bool {
        left.withLock { left in
            left -= 1
            return left >= 0
        }
    }
}

/// The states of requests after an export and an import.
@Suite(.timeLimit(.minutes(5))) struct RestorationTests {
    private let first = TemporaryDirectory()
    private let second = TemporaryDirectory()
    private let files = TemporaryDirectory()

    private func moved(
        _ before: (OfflineQueue, SQLiteQueueStore) async throws -> Void,
        _ after: (OfflineQueue, SQLiteQueueStore, ExportContent) async throws -> Void
    ) async throws {
        let data = try await withQueue(first) { queue, store in
            try await before(queue, store)
            return try await queue.exported()
        }
        let path = try file(data, in: files)
        try await withQueue(second) { queue, store in
            _ = try await queue.importRequests(from: path)
            try await after(queue, store, try ExportContent(data))
        }
    }

    @Test func `an exported request in flight is pending, or held if it must not be sent twice`() async throws
    {
        try await moved { queue, store in
            try await queue.enqueue(id: "keyed")
            try await queue.enqueue(id: "once") { $0.isAtMostOnce = true }
            let lane = try await store.restart()[0].id
            #expect(try await store.claim(of: lane).requests.count == 2)
        } _: { queue, _, _ async throws in
            #expect(try await queue.request("keyed")?.summary.state == .pending)
            #expect(try await queue.request("keyed")?.summary.attempts == 1)
            #expect(try await queue.request("once")?.summary.holdReason == .ambiguous)
        }
    }

    @Test func `a dead request keeps its body and can be retried`() async throws {
        try await moved { queue, store in
            _ = try await queue.enqueue(
                QueueRequest(method: "POST", url: "https://example.com/", body: Data(count: 100_000)),
                options: EnqueueOptions(id: "dead")
            )
            let lane = try await store.restart()[0].id
            let request = try await store.claim(of: lane).requests[0]
            try await store.conclude(request, .dead(reason: "gone"), status: 410)
        } _: { queue, store, content async throws in
            let found = try await queue.request("dead")?.summary
            #expect(found?.state == .dead && found?.status == 410 && found?.lastError == "gone")
            #expect(content.bodies["dead"]?.count == 100_000)
            #expect(try await queue.retry(["dead"]) == [.done(.pending)])
            let lane = try await store.restart()[0].id
            #expect(try await store.claim(of: lane).requests[0].body.size == 100_000)
        }
    }

    @Test func `an export without dead requests contains only unfinished ones`() async throws {
        try await withQueue(first) { queue, store in
            try await queue.enqueue(id: "dead")
            let lane = try await store.restart()[0].id
            try await store.conclude(try await store.claim(of: lane).requests[0], .dead(reason: "x"))
            try await queue.enqueue(id: "alive")
            #expect(try ExportContent(await queue.exported(includingDead: false)).ids == ["alive"])
            #expect(try await queue.content().ids == ["alive", "dead"])
        }
    }

    @Test func `requests may share dependencies that were enqueued earlier or later`() async throws {
        try await moved { queue, _ in
            try await queue.enqueue(id: "old") { $0.replaceKey = "k" }
            try await queue.enqueue(id: "waits") { $0.dependencies = ["old"] }
            try await queue.enqueue(id: "held") { $0.dependencies = ["old"] }
            _ = try await queue.hold(["held"])
            // `new` is now the last request, and the earlier ones depend on it.
            try await queue.enqueue(id: "new") { $0.replaceKey = "k" }
        } _: { queue, _, content async throws in
            #expect(content.ids == ["waits", "held", "new"] && content["waits"]?.dependencies == ["new"])
            #expect(try await queue.request("waits")?.summary.state == .blocked)
            #expect(try await queue.request("waits")?.dependencies == ["new"])
            #expect(try await queue.request("held")?.summary.holdReason == .user)
            #expect(try await queue.request("held")?.dependencies == ["new"])
        }
    }

    @Test func `an imported request with an unknown dependency is held`() async throws {
        let data = try await withQueue(first) { queue, _ in
            try await queue.enqueue(id: "first")
            try await queue.enqueue(id: "second") { $0.dependencies = ["first"] }
            return try await queue.exported()
        }
        var lines = lines(data)
        lines.remove(at: 1)
        let path = try file(try sealed(lines), in: files)
        try await withQueue(second) { queue, _ in
            _ = try await queue.importRequests(from: path)
            #expect(try await queue.request("second")?.summary.holdReason == .dependency)
        }
    }

    /// Returns the lines of an export of requests without bodies that depend on each other.
    ///
    /// - Parameter isFIFO: Whether the requests are in a FIFO lane. Default `false`.
    private func exported(
        _ requests: [(id: String, after: [String])],
        isFIFO: Bool = false
    ) async throws -> [String] {
        let directory = TemporaryDirectory()
        return try await withQueue(directory) { queue, _ in
            for (id, after) in requests {
                try await queue.enqueue(id: id) { ($0.dependencies, $0.isFIFO) = (after, isFIFO) }
            }
            return lines(try await queue.exported())
        }
    }

    @Test(arguments: [(false, "`a` → `c` → `b` → `a`"), (true, "`a` → `c` → `a`")])
    func `an export whose requests wait for each other is refused, and its requests are named`(
        isFIFO: Bool,
        cycle: String
    ) async throws {
        // In a FIFO lane, each request also waits for those before it.
        let after: [[String]] = isFIFO ? [[], [], []] : [[], ["a"], ["b"]]
        let requests = zip(["a", "b", "c"], after).map { (id: $0, after: $1) }
        let lines = try await exported(requests, isFIFO: isFIFO).map {
            $0.contains(#""id":"a""#)
                ? $0.replacing(#""dependencies":[]"#, with: #""dependencies":["c"]"#) : $0
        }
        let path = try file(try sealed(lines), in: files)
        try await withQueue(second) { queue, _ in
            let error = try await #require(throws: QueueError.self) {
                _ = try await queue.importRequests(from: path)
            }
            #expect(error.code == .invalidImport)
            #expect(error.message == "requests of the export wait for each other: dependency cycle: \(cycle)")
            #expect(try await queue.statistics().requests == 0)
        }
    }

    @Test func `an imported request is held if a request of the queue would wait for it and it for that one`()
        async throws
    {
        let lines = try await exported([("s", []), ("b", ["s"]), ("a", ["b"])])
        func path(without ids: Set<String>) throws -> String {
            let rest = lines.filter { line in !ids.contains { line.contains(#""id":"\#($0)""#) } }
            return try file(try sealed(rest), in: files)
        }
        let (first, second) = (try path(without: ["s", "b"]), try path(without: ["s"]))
        try await withQueue(self.second) { queue, _ in
            // `a` is held, because `b` is unknown.
            _ = try await queue.importRequests(from: first)
            try await queue.enqueue(id: "s") { $0.dependencies = ["a"] }
            let result = try await queue.importRequests(from: second)
            #expect(result.imported == 1 && result.known == 1)
            let held = try #require(try await queue.request("a"))
            #expect(held.summary.holdReason == .dependency && held.dependencies.isEmpty)
            #expect(held.summary.lastError == "depends on `b`, which also waits for this request")
            #expect(try await queue.request("b")?.summary.state == .blocked)
            #expect(try await queue.verify().isSound)
            #expect(try await queue.release(["a"]) == [.done(.pending)])
        }
    }

    @Test func `a request of an export whose id belongs to another request is not imported, and is reported`()
        async throws
    {
        let path = try file(
            try sealed(try await exported([("a", []), ("b", []), ("c", []), ("d", [])])),
            in: files
        )
        try await withQueue(second) { queue, _ in
            try await queue.enqueue(id: "a") { $0.submitter = Submitter(user: 7) }
            try await queue.enqueue(id: "b", method: "PUT") { $0.lane = "other" }
            try await queue.enqueue(id: "c")
            _ = try await queue.cancel(["c"])
            let result = try await queue.importRequests(from: path)
            #expect(result.imported == 1 && result.known == 1 && result.conflictCount == 2)
            #expect(
                result.conflicts.map { "\($0.id): \($0.reason)" } == [
                    "a: the id belongs to a request of the user 7",
                    "b: the id belongs to a request that differs in: method, lane",
                ]
            )
            #expect(try await queue.request("b")?.summary.method == "PUT")
            #expect(try await queue.verify().isSound)
        }
    }

    /// An import holds a request for `auth` if an older version stored it with a secret.
    @Test(arguments: [
        (#""state":"held","holdReason":"auth""#, QueuedRequest.State.held), (#""state":"pending""#, .blocked),
    ])
    func `an imported request is held if its dependency is lost, whatever its state was`(
        state: String,
        imported: QueuedRequest.State
    ) async throws {
        let data = try await withQueue(first) { queue, _ in
            try await queue.enqueue(id: "first")
            try await queue.enqueue(id: "second") { $0.dependencies = ["first"] }
            return try await queue.exported()
        }
        let lines = lines(data).map { $0.replacing(#""state":"blocked""#, with: state) }
        let path = try file(try sealed(lines), in: files)
        try await withQueue(second) { queue, _ in
            _ = try await queue.importRequests(from: path)
            #expect(try await queue.request("second")?.summary.state == imported)
            _ = try await queue.cancel(["first"])
            #expect(try await queue.request("second")?.summary.holdReason == .dependency)
        }
    }

    @Test func `a repeated call is accepted although its deadline has passed since the first call`()
        async throws
    {
        try await withQueue(first) { queue, _ in _ = try await queue.enqueue(id: "a") }
        try edit(first, "UPDATE request SET created_at = created_at - 3600000")
        try await withQueue(first) { queue, _ in
            let passed = Date() - 60
            try await queue.enqueue(id: "a") { $0.deadline = passed }
            await #expect(throws: QueueError.self) {
                try await queue.enqueue(id: "b") { $0.deadline = passed }
            }
            #expect(try await queue.counts[.pending] == 1)
        }
    }

    @Test(arguments: [true, false]) func `of two requests with the same replace key the newer one is kept`(
        isNewer: Bool
    )
        async throws
    {
        let now = Date()
        let data = try await withQueue(first) { queue, _ in
            try await queue.enqueue(id: "theirs") { $0.replaceKey = "k" }
            return try await queue.exported()
        }
        // Makes the exported request newer or older than the one that waits in the second queue.
        let created = Int64((now.timeIntervalSince1970 + (isNewer ? 1000 : -1000)) * 1000)
        let pattern = #/"created":[0-9]+,"deferrals"/#
        let text = lines(data).map { $0.replacing(pattern, with: "\"created\":\(created),\"deferrals\"") }
        let path = try file(try sealed(text), in: files)
        try await withQueue(second) { queue, _ in
            try await queue.enqueue(id: "ours") { $0.replaceKey = "k" }
            let result = try await queue.importRequests(from: path)
            #expect(result.superseded == (isNewer ? 0 : 1) && result.imported == (isNewer ? 1 : 0))
            #expect(try await queue.content().ids == [isNewer ? "theirs" : "ours"])
        }
    }

    @Test func `requests of different users with the same replace key are kept, whoever imports them`()
        async throws
    {
        let data = try await withQueue(first) { queue, store in
            for user: UInt32 in [7, 8] {
                let request = try new("\(user)") {
                    ($0.replaceKey, $0.submitter) = ("k", Submitter(user: user))
                }
                try await store.enqueue(request)
            }
            return try await queue.exported()
        }
        let path = try file(data, in: files)
        try await withQueue(second) { queue, _ in
            let result = try await queue.importRequests(from: path)
            #expect(result.imported == 2 && result.superseded == 0)
            #expect(try await queue.content().ids == ["7", "8"])
        }
    }

    @Test func `a request that finishes during the export of its body is marked as void`() async throws {
        let directory = first
        let queue = try await directory.openQueue(isStarted: false)
        let body = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
        _ = try await queue.enqueue(
            QueueRequest(method: "POST", url: "https://example.com/", body: body),
            options: EnqueueOptions(id: "long")
        )
        try await queue.enqueue(id: "short")
        var trailer = try ExportTrailer()
        let begun = try await queue.exportPage(limit: 100_000)
        trailer.add(begun.data)
        #expect(begun.next?.bodyBytes ?? 0 > 0)
        _ = try await queue.cancel(["long"])
        let rest = try await queue.exportPage(after: begun.next)
        trailer.add(rest.data)
        let content = try ExportContent(begun.data + rest.data + trailer.finish())
        #expect(content.ids == ["short"] && rest.next == nil)
        await queue.stop()
    }

    @Test func `requests that cannot be exported completely are left out and reported`() async throws {
        try await withQueue(first) { queue, _ in
            for id in ["kept", "changed"] {
                _ = try await queue.enqueue(
                    QueueRequest(method: "POST", url: "https://example.com/", body: Data(count: 70_000)),
                    options: EnqueueOptions(id: id)
                )
            }
            try await queue.enqueue(id: "row")
        }
        try edit(first, "UPDATE request SET url = 'gopher://x' WHERE id = 'row'")
        try await withQueue(first) { queue, store in
            let lane = try await store.restart()[0].id
            let bodies = try await store.claim(of: lane).requests.map(\.body)
            let body = try #require(bodies[1].file)
            try Data(count: 69_999).write(to: URL(fileURLWithPath: "\(first.path)/spool/\(body)"))
            let page = try await queue.exportPage()
            #expect(page.leftOut.map(\.id) == ["changed", "row"])
            #expect(try await queue.content().ids == ["kept"])
        }
    }
}

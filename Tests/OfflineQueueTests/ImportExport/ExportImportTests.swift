internal import Foundation
internal import OfflineQueue
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct ExportImportTests {
    private let first = TemporaryDirectory()
    private let second = TemporaryDirectory()
    private let files = TemporaryDirectory()

    private func populated(_ count: Int = 60) async throws -> (data: Data, content: ExportContent) {
        try await withQueue(first) { queue, store in
            try await queue.populate(count - 1)
            _ = try await queue.hold(["a3"])
            try await store.enqueue(try new("z", host: "dead.example"))
            let lane = try await store.restart().first { $0.key.origin.host == "dead.example" }
            let batch = try await store.claim(of: try #require(lane).id)
            try await store.conclude(batch.requests[0], .dead(reason: "told so"), status: 410)
            let data = try await queue.exported()
            return (data, try ExportContent(data))
        }
    }

    @Test func `an export restores everything in another queue`() async throws {
        let (data, content) = try await populated()
        #expect(content.requests.count == 60 && content.requests.last?.state == .dead)
        let path = try file(data, in: files)
        try await withQueue(second) { queue, _ in
            let result = try await queue.importRequests(from: path)
            #expect(result.imported == 60 && result.known == 0)
            #expect(try await queue.content() == content)
            #expect(try await queue.verify().isSound)
        }
        // Exactly the bodies of more than 64 KiB have files in the spool of the second queue.
        let bodies = try FileManager.default.contentsOfDirectory(atPath: "\(second.path)/spool").count
        #expect(bodies == content.bodies.values.count { $0.count > 64 * 1024 } && bodies > 0)
    }

    @Test(
        arguments: [(ImportedSubmitters.original, 7, nil), (.user(9), 9, 9), (.user(nil), nil, nil)]
            as [(ImportedSubmitters, UInt32?, UInt32?)]
    )
    func `imported requests belong to the importer, or to their submitters`(
        submitters: ImportedSubmitters,
        first: UInt32?,
        second: UInt32?
    ) async throws {
        let data = try await withQueue(self.first) { queue, store in
            try await store.enqueue(try new("a") { $0.submitter = Submitter(user: 7) })
            try await store.enqueue(try new("b"))
            return try await queue.exported()
        }
        let path = try file(data, in: files)
        try await withQueue(self.second) { queue, _ in
            _ = try await queue.importRequests(from: path, as: submitters)
            #expect(try await queue.submitters(of: ["a", "b"]) == ["a": first, "b": second])
            #expect(try await queue.verify().isSound)
        }
    }

    @Test(arguments: [1, 1000, 70_000]) func `pages of any size produce the same export`(limit: Int)
        async throws
    {
        let (_, content) = try await populated(30)
        try await withQueue(first) { queue, _ in
            let exported = try await queue.exported(limit: limit)
            #expect(try ExportContent(exported) == content)
        }
    }

    @Test(arguments: [1, 63, 4097]) func `an export can be parsed in pieces of any size`(piece: Int)
        async throws
    {
        let (data, content) = try await populated(10)
        #expect(try ExportContent(data, piece: piece) == content)
    }

    @Test func `a repeated import changes nothing`() async throws {
        let path = try file(try await populated().data, in: files)
        try await withQueue(second) { queue, _ in
            _ = try await queue.importRequests(from: path)
            let before = try await queue.content()
            let again = try await queue.importRequests(from: path)
            #expect(again.imported == 0 && again.known == 60)
            #expect(try await queue.content() == before)
        }
    }

    @Test func `an import that failed halfway can be repeated`() async throws {
        let (data, content) = try await populated()
        let path = try file(data, in: files)
        let store = try await SQLiteQueueStore(directory: second.path)
        let failing = FailingArchive(inner: store, after: 1)
        let queue = OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: second.path),
            store: failing,
            sender: FakeSender(),
            gate: FakeGate()
        )
        await #expect(throws: QueueError.self) { try await queue.importRequests(from: path) }
        let half = try await queue.counts[.pending]
        #expect(half > 0 && half < 50)
        await queue.stop()
        try await withQueue(second) { queue, _ in
            _ = try await queue.importRequests(from: path)
            #expect(try await queue.content() == content)
            #expect(try await queue.verify().findings.isEmpty)
        }
    }

    @Test func `an import that does not fit is refused as a whole`() async throws {
        let path = try file(try await populated().data, in: files)
        for limits in [limits(requests: 58), limits(bytes: 100_000)] {
            let queue = try await second.openQueue(isStarted: false) { $0.limits = limits }
            let code = await errorCode { _ = try await queue.importRequests(from: path) }
            #expect(code == .queueFull)
            #expect(try await queue.statistics().requests == 0)
            await queue.stop()
        }
    }

    private func limits(requests: Int = 1000, bytes: Int64 = 1 << 30) -> QueueLimits {
        var limits = QueueLimits()
        (limits.requests, limits.bytes) = (requests, bytes)
        return limits
    }

    @Test func `imported requests are sent in order and with their keys`()
        async throws
    {
        let data = try await withQueue(first) { queue, _ in
            for index in 0..<5 {
                _ = try await queue.enqueue(
                    QueueRequest(
                        method: "POST",
                        url: "https://example.com/",
                        body: Data(count: 30_000 * index)
                    ),
                    options: EnqueueOptions(isFIFO: true, id: "\(5 - index)")
                )
            }
            return try await queue.exported()
        }
        let keys = try ExportContent(data).requests.map { $0.key?.value }
        let sender = FakeSender { _ in .status(200) }
        let queue = try await second.openQueue(sender, isStarted: false)
        _ = try await queue.importRequests(from: try file(data, in: files))
        try await queue.start()
        // Request `1` is the last one of its lane.
        #expect(try await queue.result(of: "1")?.summary.state == .delivered)
        #expect(sender.attempts.map(\.id) == ["5", "4", "3", "2", "1"])
        let sent = sender.attempts.map { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
        #expect(sent == keys && !sent.contains(nil))
        await queue.stop()
    }

    @Test func `an export that was uploaded in pieces is imported`() async throws {
        let (data, content) = try await populated(20)
        try await withQueue(second) { queue, _ in
            var offset: Int64 = 0
            while offset < data.count {
                let piece = data.dropFirst(Int(offset)).prefix(300_000)
                offset = try await queue.appendToBody("export", Data(piece), at: offset)
            }
            _ = try await queue.importStaged("export", size: offset)
            #expect(try await queue.content() == content)
            #expect(try await queue.verify().findings.isEmpty)
            let code = await errorCode { _ = try await queue.importStaged("export", size: offset) }
            #expect(code == .unknownStagedBody)
        }
    }
}

/// An archive that restores some batches of an import, and then fails.
private struct FailingArchive: WrappedArchive {
    let inner: any QueueStore
    private let left: Counter

    init(inner: any QueueStore, after count: Int) {
        self.inner = inner
        left = Counter(count)
    }

    func restore(_ requests: [RestoredRequest]) async throws -> [Restoration] {
        guard left.take() else { throw QueueError(.queueFull, "another caller was faster") }
        return try await inner.archive.restore(requests)
    }
}

internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

@Suite(.timeLimit(.minutes(5))) struct ScanTests {
    private let directory = TemporaryDirectory()

    /// No rests, and limits that are not reached.
    private static let timing: ScanTiming = {
        var timing = ScanTiming()
        (timing.pace.shortest, timing.pace.longest) = (.zero, .zero)
        (timing.limit, timing.startDelay) = (.seconds(120), .zero)
        (timing.wait, timing.recordInterval) = (.milliseconds(10), .zero)
        return timing
    }()

    private var spool: String { "\(directory.path)/spool" }
    private var files: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: spool).sorted() }
    }
    private var marker: String? { DamageMarker(directory: directory.path).text }

    private func populated() async throws {
        try await withQueue(directory) { queue, _ in try await queue.populate(40) }
    }

    /// Scans a store, and returns the positions of the pieces that were read and what was found.
    ///
    /// - Parameter isEnd: Whether to stop before a position. Default: at the end of the store.
    private func scan(
        _ store: SQLiteQueueStore,
        from position: ScanPosition = .database,
        until isEnd: (ScanPosition) -> Bool = { _ in false }
    ) async throws -> (visited: [ScanPosition], reports: [QueueVerification]) {
        var (visited, reports, next) = ([ScanPosition](), [QueueVerification](), Optional(position))
        while let position = next, !isEnd(position) {
            let piece = try await store.scan(position, Self.timing)
            visited.append(position)
            reports.append(piece.report)
            next = piece.next
        }
        return (visited, reports)
    }

    @Test func `a scan checks the whole database, each request and each body`() async throws {
        try await populated()
        try await withQueue(directory) { _, store in
            let (visited, reports) = try await scan(store)
            #expect(visited.prefix(2) == [.database, .requests(.waiting, after: 0)])
            #expect(visited.last == .requests(.dead, after: 0))
            #expect(reports.reduce(0) { $0 + $1.requests } == 40)
            #expect(reports.reduce(0) { $0 + $1.files } == (try files.count))
            #expect(reports.allSatisfy { $0.findings.isEmpty } && marker == nil)
        }
    }

    @Test func `a table whose structure takes too long is read row by row, and then its indexes`()
        async throws
    {
        try await populated()
        let pages = try rootPages(of: directory).filter { $0.value > 0 }
        let indexes = pages.keys.filter {
            $0.hasPrefix("request_") || $0.hasPrefix("sqlite_autoindex_request")
        }
        try await withQueue(directory) { _, store in
            var short = Self.timing
            short.limit = .zero
            #expect(try await store.scan(.database, short).next == .table(after: ""))
            let next = try await store.scan(.table(after: "meta"), short).next
            #expect(next == .rows(of: "request", after: -1))
            let (visited, _) = try await scan(store, from: .rows(of: "request", after: -1)) {
                $0 == .table(after: "request")
            }
            let read = visited.compactMap { position -> String? in
                if case .index(_, let last, attempt: 1) = position { return last }
                return nil
            }
            // Each position names the index before it.
            #expect(read == [""] + indexes.sorted())
        }
    }

    @Test(arguments: [
        "attempt", "body", "completion", "depends", "grdb_migrations", "history", "lane", "meta", "request",
        "response", "sqlite_schema", "sqlite_sequence", "submitter",
    ])
    func `each table can be read row by row`(table: String) async throws {
        try await populated()
        try await withQueue(directory) { _, store in
            let (_, reports) = try await scan(store, from: .rows(of: table, after: -1)) {
                $0 == .table(after: table)
            }
            #expect(reports.count >= 2 && reports.allSatisfy { $0.findings.isEmpty }, "\(reports)")
        }
    }

    @Test(
        arguments: [
            (.database, "body"), (.table(after: "attempt"), "body"),
            (.rows(of: "body", after: -1), "body"), (.rows(of: "attempt", after: -1), "attempt"),
            (.index(of: "request", after: "", attempt: 1), "request_expiry"),
            (.requests(.waiting, after: 0), "body"),
        ] as [(ScanPosition, String)]
    )
    func `a damaged page is found while the queue runs, and recorded for the next start`(
        position: ScanPosition,
        damaged: String
    ) async throws {
        try await populated()
        try await withQueue(directory) { _, store in
            try damageRootPage(of: damaged, in: directory)
            let (_, reports) = try await scan(store, from: position) { $0 == .table(after: "body") }
            let finding = reports.flatMap(\.findings).first { $0.kind == .database }
            #expect(finding != nil && marker == finding?.message, "\(reports)")
            // The queue continues with what can be read.
            try await store.check()
        }
        let refused = await errorCode { try await withQueue(directory) { _, _ in } }
        #expect(refused == .storeUnusable)
    }

    @Test func `damaged bodies are found, and concern only their requests`() async throws {
        try await withQueue(directory) { queue, store in
            for (id, size) in [("a", 100_000), ("b", 3 << 20), ("c", 3 << 20)] {
                let body = Data(repeating: id.utf8.first!, count: size)
                let request = QueueRequest(method: "POST", url: "https://example.com/", body: body)
                _ = try await queue.enqueue(request, options: EnqueueOptions(id: id))
            }
            for name in try files {
                let path = "\(spool)/\(name)"
                var content = try Data(contentsOf: URL(filePath: path))
                switch content[0] {
                case UInt8(ascii: "a"): try FileManager.default.removeItem(atPath: path)
                case UInt8(ascii: "b"):
                    content[content.count - 1] ^= 1
                    try content.write(to: URL(filePath: path))
                default: break
                }
            }
            let found = try await scan(store).reports.flatMap(\.findings).map { "\($0.kind) \($0.subject)" }
            #expect(found == ["bodyMissing a", "bodyChanged b"] && marker == nil)
        }
    }

    private func withScans<Value>(
        every interval: Duration = .seconds(86_400),
        _ body: (OfflineQueue) async throws -> Value
    ) async throws -> Value {
        let queue = try await directory.openQueue(isStarted: false) {
            ($0.scanTiming, $0.scanInterval) = (Self.timing, interval)
        }
        _ = try await queue.pause()
        try await queue.start()
        do {
            let value = try await body(queue)
            await queue.stop()
            return value
        } catch {
            await queue.stop()
            throw error
        }
    }

    @Test func `a running queue scans its store, warns once, and keeps the result over a restart`()
        async throws
    {
        try await populated()
        for name in try files.prefix(2) { try FileManager.default.removeItem(atPath: "\(spool)/\(name)") }
        let first = try await withScans { queue in
            try await poll { queue.scan.completed != nil }
            await queue.stop()
            var warnings: [String] = []
            for await warning in queue.warnings { warnings.append(warning) }
            #expect(warnings.count == 1 && warnings[0].contains("body_missing: a"), "\(warnings)")
            return queue.scan
        }
        #expect(first.findingCount == 2 && first.findings.map(\.kind) == [.bodyMissing, .bodyMissing])
        #expect(first.isDamaged && first.began == nil)
        try await withScans { queue in try await poll { queue.scan == first } }
        // The next scan after the damage is gone does not find it any more.
        let ids = first.findings.map(\.subject)
        try await withQueue(directory) { queue, _ in _ = try await queue.cancel(ids) }
        try await withScans(every: .milliseconds(1)) { queue in
            try await poll { (queue.scan.completed ?? first.completed) != first.completed }
            #expect(!queue.scan.isDamaged)
        }
    }

    @Test func `a verification replaces the findings of scans`() async throws {
        try await populated()
        let (body, kept) = ("\(spool)/\(try files[0])", "\(directory.path)/kept")
        try FileManager.default.moveItem(atPath: body, toPath: kept)
        try await withScans { queue in
            try await poll { queue.scan.completed != nil }
            #expect(queue.scan.findingCount == 1)
            _ = try await queue.verify()
            #expect(queue.scan.findingCount == 1)
            try FileManager.default.moveItem(atPath: kept, toPath: body)
            _ = try await queue.verify()
            #expect(!queue.scan.isDamaged)
        }
    }

    @Test func `a new interval applies to an open queue`() async throws {
        try await populated()
        try await withScans(every: .zero) { queue in
            var configuration = await queue.configuration
            configuration.scanInterval = .seconds(86_400)
            await queue.use(configuration)
            try await poll { queue.scan.completed != nil }
        }
    }

    @Test func `an interrupted scan continues after a restart`() async throws {
        try await populated()
        try FileManager.default.removeItem(atPath: "\(spool)/\(try files[0])")
        try await withQueue(directory) { _, store in
            var record = await store.scanRecord()
            _ = record.begin(at: Date())
            // The requests that wait were already read.
            _ = record.add(ScanPiece(next: .requests(.dead, after: 0)), at: Date())
            try await store.keep(record)
        }
        try await withScans { queue in
            try await poll { queue.scan.completed != nil }
            #expect(!queue.scan.isDamaged)
        }
    }

    @Test func `a store that is set aside takes the record of its scans along`() async throws {
        try await populated()
        try await withScans { queue in try await poll { queue.scan.completed != nil } }
        let path = "\(directory.path)/queue.scan"
        try #require(FileManager.default.fileExists(atPath: path))
        let moved = try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        let aside = try #require(moved)
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(FileManager.default.fileExists(atPath: "\(aside.directory)/queue.scan"))
    }
}

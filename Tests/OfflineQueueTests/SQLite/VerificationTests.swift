internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

@Suite(.timeLimit(.minutes(5))) struct VerificationTests {
    private let directory = TemporaryDirectory()

    private func populated() async throws {
        try await withQueue(directory) { queue, _ in try await queue.populate(40) }
    }

    private func verified() async throws -> QueueVerification {
        try await withQueue(directory) { queue, _ in try await queue.verify() }
    }

    private var bodies: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: "\(directory.path)/spool").sorted() }
    }

    @Test func `verification finds nothing in a sound queue`() async throws {
        try await populated()
        let report = try await verified()
        #expect(report.findings.isEmpty && report.isSound)
        #expect(report.requests == 40)
        #expect(report.files == (try bodies.count) && report.files > 0)
    }

    @Test func `a loss is reported even if more findings precede it than are listed`() {
        var report = QueueVerification()
        for number in 0..<QueueVerification.maximumFindings {
            report.found(.orphan, "\(number)", "no request")
        }
        #expect(report.isSound && !report.isDamaged)
        report.found(.request, "a", "lost")
        #expect(
            !report.isSound && report.isDamaged && report.findings.count == QueueVerification.maximumFindings
        )
    }

    @Test(arguments: [
        ("UPDATE meta SET requests = requests + 1", "counter", "queue"),
        ("UPDATE meta SET history_bytes = 7", "counter", "history"),
        ("UPDATE lane SET bytes = bytes + 1 WHERE id = 1", "counter", "https"),
        ("UPDATE request SET url = 'x' WHERE id = 'a7'", "request", "a7"),
        ("UPDATE request SET content = content || 'Cookie: a' || char(10) WHERE id = 'a7'", "request", "a7"),
        ("UPDATE request SET options = '?' WHERE id = 'a7'", "request", "a7"),
        ("UPDATE body SET bytes = x'00' WHERE seq = (SELECT min(seq) FROM body)", "request", "a"),
        (
            "UPDATE body SET bytes = zeroblob(length(bytes)) WHERE seq = (SELECT min(seq) FROM body)",
            "request", "a"
        ),
        ("DELETE FROM body WHERE seq = (SELECT min(seq) FROM body)", "request", "a"),
        ("UPDATE request SET body_file = '../../etc/passwd' WHERE body_file IS NOT NULL", "request", "a"),
        ("UPDATE request SET lane_id = 99 WHERE id = 'a7'", "reference", "request"),
    ]) func `manual changes of the database are detected`(sql: String, kind: String, subject: String)
        async throws
    {
        try await populated()
        try edit(directory, sql)
        let report = try await verified()
        #expect(!report.isSound && report.findingCount >= 1)
        #expect(
            report.findings.contains { $0.kind.rawValue == kind && $0.subject.hasPrefix(subject) },
            "\(report)"
        )
    }

    @Test func `missing bodies, changed bodies and files without a request are found`() async throws {
        try await populated()
        let names = try bodies
        let spool = "\(directory.path)/spool"
        try FileManager.default.removeItem(atPath: "\(spool)/\(names[0])")
        var content = try Data(contentsOf: URL(fileURLWithPath: "\(spool)/\(names[1])"))
        content[content.count - 1] ^= 1
        try content.write(to: URL(fileURLWithPath: "\(spool)/\(names[1])"))
        try Data().write(to: URL(fileURLWithPath: "\(spool)/\(String(repeating: "0", count: 32))"))
        let kinds = try await verified().findings.map(\.kind)
        #expect(kinds.sorted { $0.rawValue < $1.rawValue } == [.bodyChanged, .bodyMissing, .orphan])
    }

    @Test func `a missing body is found even if the index of the bodies misses its request`() async throws {
        try await populated()
        try FileManager.default.removeItem(atPath: "\(directory.path)/spool/\(try bodies[0])")
        try emptyIndex("request_file", of: directory)
        let report = try await verified()
        let kinds = Set(report.findings.map(\.kind))
        #expect(kinds == [.database, .bodyMissing], "\(report)")
        #expect(report.findings.contains { $0.message.contains("missing from index request_file") })
    }

    /// Damages a page that opening the store does not read.
    private func damagePage() throws { try damageRootPage(of: "body", in: directory) }

    @Test func `a quick check finds a damaged page while the queue runs, and ends at its time limit`()
        async throws
    {
        try await populated()
        try await withQueue(directory) { queue, _ in
            #expect(try await queue.quickCheck(within: .seconds(60)) == .noDamage)
            #expect(try await queue.quickCheck(within: .zero) == .unfinished)
            // The limit of one check has no effect on the next one.
            #expect(try await queue.quickCheck(within: .seconds(60)) == .noDamage)
            try damagePage()
            let damaged = try await queue.quickCheck(within: .seconds(60))
            guard case .damaged(let damage) = damaged else { throw QueueError(.storeFailed, "\(damaged)") }
            #expect(!damage.contains("\n"))
        }
        let store = try await SQLiteQueueStore(directory: directory.path)
        await store.close()
        #expect(await errorCode { _ = try await store.quickCheck(within: .seconds(60)) } == .stopped)
    }

    @Test func `a damaged page is detected while the queue runs`() async throws {
        try await populated()
        try await withQueue(directory) { queue, _ in
            try damagePage()
            let unused = String(repeating: "0", count: 32)
            try Data().write(to: URL(filePath: "\(directory.path)/spool/\(unused)"))
            let report = try await queue.verify()
            #expect(report.findings.contains { $0.kind == .database })
            // The damaged part may refer to the file.
            #expect(!report.findings.contains { $0.kind == .orphan })
        }
    }

    @Test func `a verification ends when the queue stops and when its task is cancelled`() async throws {
        try await populated()
        let store = try await SQLiteQueueStore(directory: directory.path)
        await store.close()
        #expect(await errorCode { _ = try await store.inspect() } == .stopped)
        try await withQueue(directory) { queue, _ in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await queue.verify()
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }
}

/// Makes an index miss every row that it must contain, as damage of a disk can. SQLite notices the damage only in a
/// full check.
private func emptyIndex(_ name: String, of directory: TemporaryDirectory) throws {
    func replaceCondition(_ old: String, with new: String) throws {
        try edit(
            directory,
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'body_file IS \(old)', 'body_file IS \(new)') WHERE name = '\(name)'
            """
        )
    }
    try replaceCondition("NOT NULL", with: "NULL")
    try edit(directory, "REINDEX \(name)")
    try replaceCondition("NULL", with: "NOT NULL")
}

@Suite(.timeLimit(.minutes(5))) struct SpoolSweepTests {
    private let directory = TemporaryDirectory()
    private var spool: String { "\(directory.path)/spool" }
    private var files: Set<String> {
        get throws { try Set(FileManager.default.contentsOfDirectory(atPath: spool)) }
    }

    /// Stores two waiting requests and a dead one with large bodies, and returns the names of their files.
    private func populated() async throws -> Set<String> {
        try await withQueue(directory) { queue, store in
            for index in 0..<3 {
                _ = try await queue.enqueue(
                    QueueRequest(method: "POST", url: "https://example.com/", body: Data(count: 70_000)),
                    options: EnqueueOptions(id: "\(index)")
                )
            }
            let lane = try await store.restart()[0].id
            try await store.conclude(try await store.claim(1, of: lane).requests[0], .dead(reason: "x"))
        }
        let needed = try files
        try #require(needed.count == 3)
        return needed
    }

    @Test func `a start removes only files that no request refers to`() async throws {
        let needed = try await populated()
        let (orphan, part) = (String(repeating: "a", count: 32), String(repeating: "b", count: 32) + ".part")
        for name in [orphan, part, "another user's"] {
            try Data("x".utf8).write(to: URL(fileURLWithPath: "\(spool)/\(name)"))
        }
        let queue = try await directory.openQueue(isStarted: false)
        _ = try await queue.pause()
        try await queue.start()
        let expected = needed.union(["another user's"])
        try await until(changesIn: spool) { try files == expected }
        await queue.stop()
        #expect(try files == expected)
    }

    @Test(arguments: ["request_file", "history_file"])
    func `a start keeps the bodies of requests that a damaged index misses`(index: String) async throws {
        let needed = try await populated()
        try emptyIndex(index, of: directory)
        let orphan = String(repeating: "a", count: 32)
        try Data("x".utf8).write(to: URL(filePath: "\(spool)/\(orphan)"))
        let queue = try await directory.openQueue(isStarted: false)
        _ = try await queue.pause()
        try await queue.start()
        try await until(changesIn: spool) { try !files.contains(orphan) }
        await queue.stop()
        #expect(try files == needed)
        try edit(directory, "REINDEX")
        let report = try await withQueue(directory) { queue, _ in try await queue.verify() }
        #expect(report.findings.isEmpty && report.files == 3, "\(report)")
    }
}

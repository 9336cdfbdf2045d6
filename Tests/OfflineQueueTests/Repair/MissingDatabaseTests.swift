internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Queues whose database file was removed or moved away.
@Suite(.timeLimit(.minutes(5))) struct MissingDatabaseTests {
    private let directory = TemporaryDirectory()
    private let files = FileManager.default

    private var database: String { "\(directory.path)/queue.sqlite" }

    private func populate() async throws {
        try await withQueue(directory) { queue, _ in try await queue.populate(40) }
    }

    private func contents() throws -> [String] {
        try files.subpathsOfDirectory(atPath: directory.path).sorted()
    }

    private func opening() async -> QueueError? {
        do {
            try await withQueue(directory) { _, _ in }
            return nil
        } catch {
            return error as? QueueError
        }
    }

    @Test func `a queue without its database is not opened, and nothing is created`() async throws {
        try await populate()
        let kept = "\(directory.path)/kept"
        try files.moveItem(atPath: database, toPath: kept)
        try files.removeItem(atPath: "\(directory.path)/queue.lock")
        let before = try contents()
        for _ in 0..<2 {
            let error = try #require(await opening())
            #expect(error.code == .storeUnusable && error.path == database)
            #expect(
                error.message.contains("`\(database)` is missing") && error.message.contains("move it back")
            )
            #expect(error.message.contains("`OfflineQueue.setAside(directory:)`"))
            #expect(try contents() == before)
        }
        try files.moveItem(atPath: kept, toPath: database)
        let report = try await withQueue(directory) { queue, _ in try await queue.verify() }
        #expect(report.isSound && report.requests == 40, "\(report)")
    }

    @Test func `a log without its database is not opened`() async throws {
        try await populate()
        try files.removeItem(atPath: "\(directory.path)/spool")
        try files.moveItem(atPath: database, toPath: "\(database)-wal")
        #expect(await opening()?.message.contains("is missing") == true)
        #expect(!files.fileExists(atPath: database))
    }

    @Test func `a directory with only the lock file is a new queue`() async throws {
        try await populate()
        try files.removeItem(atPath: database)
        try files.removeItem(atPath: "\(directory.path)/spool")
        #expect(await opening() == nil)
    }

    @Test func `the files of a queue without its database can be set aside`() async throws {
        try await populate()
        let bodies = try files.contentsOfDirectory(atPath: "\(directory.path)/spool").sorted()
        try files.removeItem(atPath: database)
        let aside = try #require(try await OfflineQueue.setAside(directory: directory.path))
        #expect(try files.contentsOfDirectory(atPath: "\(aside.directory)/spool").sorted() == bodies)
        #expect(await opening() == nil)
    }

    @Test(arguments: [false, true])
    func `a store that has lost its database and has no bodies can be set aside`(isDamaged: Bool) async throws
    {
        try await withQueue(directory) { queue, _ in _ = try await queue.enqueue(id: "a") }
        #expect(try files.contentsOfDirectory(atPath: "\(directory.path)/spool").isEmpty)
        try? files.removeItem(atPath: "\(database)-wal")
        try files.removeItem(atPath: database)
        if isDamaged {
            try Data("a page\n".utf8).write(to: URL(filePath: "\(directory.path)/queue.damaged"))
            #expect(await opening()?.message.contains("a page") == true)
            #expect(!files.fileExists(atPath: database))
        }
        let aside = try #require(try await OfflineQueue.setAside(directory: directory.path))
        #expect(aside.reason == "the database file is missing")
        #expect(!aside.salvage.isWhole && aside.salvage.waiting == 0, "\(aside)")
        #expect(!files.fileExists(atPath: database))
        #expect(!files.fileExists(atPath: "\(aside.directory)/queue.sqlite"))
        #expect(files.fileExists(atPath: "\(aside.directory)/spool"))
        #expect(await opening() == nil)
    }

    @Test(arguments: [nil, "other", String(repeating: "0", count: 32)] as [String?])
    func `a spool without a lock file is a queue's only if it contains a body`(name: String?) async throws {
        let spool = "\(directory.path)/spool"
        try files.createDirectory(atPath: spool, withIntermediateDirectories: true)
        try files.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory.path)
        if let name { try Data("x".utf8).write(to: URL(filePath: "\(spool)/\(name)")) }
        let isQueue = name?.count == 32
        let expected: QueueError.Code? = isQueue ? .storeUnusable : nil
        #expect(await opening()?.code == expected)
        #expect(files.fileExists(atPath: database) != isQueue)
    }
}

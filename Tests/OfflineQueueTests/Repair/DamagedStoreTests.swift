internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Stores with damaged files.
@Suite(.timeLimit(.minutes(5))) struct DamagedStoreTests {
    let directory: TemporaryDirectory
    static let count = 120

    var database: String { "\(directory.path)/queue.sqlite" }

    func populated() async throws -> ExportContent {
        try await withQueue(directory) { queue, _ in
            try await queue.populate(Self.count)
            return try await queue.content()
        }
    }

    func change(_ name: String = "queue.sqlite", _ body: (inout Data) -> Void) throws {
        let url = URL(fileURLWithPath: "\(directory.path)/\(name)")
        var data = try Data(contentsOf: url)
        body(&data)
        try data.write(to: url)
    }

    func overwrite(page: Int) throws {
        try change {
            $0.replaceSubrange((page - 1) * 4096..<page * 4096, with: Data(repeating: 0x55, count: 4096))
        }
    }

    /// Returns the contents of all files below `path`, regardless of their names.
    func contents(below path: String) throws -> [Data] {
        try FileManager.default.subpathsOfDirectory(atPath: path)
            .filter { !$0.hasSuffix("-shm") && !$0.hasSuffix("queue.lock") }
            .compactMap { FileManager.default.contents(atPath: "\(path)/\($0)") }
    }

    private func opening() async -> QueueError? {
        do {
            try await withQueue(directory) { _, _ in }
            return nil
        } catch {
            return error as? QueueError
        }
    }

    // MARK: Detection

    @Test(arguments: ["delete", "wal"]) func `another program's database is not changed`(mode: String)
        async throws
    {
        try FileManager.default.createDirectory(
            atPath: directory.path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let other = try DatabaseQueue(path: database)
        try await other.writeWithoutTransaction {
            try $0.execute(
                sql: "PRAGMA journal_mode = \(mode); CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)"
            )
        }
        try other.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: database))
        let error = await opening()
        #expect(error?.code == .storeUnusable && error?.message.contains("another program") == true)
        let code = await errorCode {
            _ = try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        }
        #expect(code == .storeUnusable)
        #expect(try Data(contentsOf: URL(fileURLWithPath: database)) == before)
    }

    @Test func `a database of a newer netwatch is not changed`() async throws {
        _ = try await populated()
        try edit(directory, "INSERT INTO grdb_migrations VALUES ('v99')")
        let before = try Data(contentsOf: URL(fileURLWithPath: database))
        let error = await opening()
        #expect(error?.code == .storeUnusable && error?.message.contains("newer") == true)
        let code = await errorCode {
            _ = try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        }
        #expect(code == .storeUnusable)
        #expect(try Data(contentsOf: URL(fileURLWithPath: database)) == before)
    }

    @Test func `a database that another program has locked is unavailable, not damaged`() async throws {
        _ = try await populated()
        let other = try DatabaseQueue(path: database)
        try await other.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; UPDATE meta SET bytes = bytes")
        }
        let code = await opening()?.code
        try other.close()
        #expect(code == .storeUnavailable)
        #expect(await opening() == nil)
    }

    @Test(arguments: [
        "DELETE FROM meta", "UPDATE meta SET boot_id = x'00'", "DROP TABLE depends; DROP TABLE meta",
        "PRAGMA ignore_check_constraints = ON; UPDATE lane SET mode = 'mood'",
    ]) func `the tables that every start reads are checked`(sql: String) async throws {
        _ = try await populated()
        // SQLite refuses some of these values, because the tables are STRICT, although a damaged page may contain them.
        try? edit(directory, sql)
        let error = await opening()
        guard sql.contains("x'00'") || error?.code == .storeUnusable else {
            Issue.record("\(sql): \(String(describing: error))")
            return
        }
    }

    @Test func `an empty database with a spool is not a new queue`() async throws {
        _ = try await populated()
        try change { $0 = Data() }
        #expect(await opening()?.code == .storeUnusable)
        let aside = try await OfflineQueue.setAside(directory: directory.path)
        #expect(aside?.salvage.waiting == 0)
        #expect(await opening() == nil)
    }

    // MARK: Setting aside

    @Test func `a sound store is set aside only on request`() async throws {
        let content = try await populated()
        #expect(try await OfflineQueue.setAside(directory: directory.path) == nil)
        #expect(await opening() == nil)
        let aside = try #require(
            try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        )
        #expect(
            aside.salvage.waiting == Self.count && aside.salvage.lostCount == 0 && aside.salvage.gaps.isEmpty
        )
        #expect(try saved(aside) == content)
    }

    func saved(_ aside: SetAsideStore) throws -> ExportContent {
        try ExportContent(try Data(contentsOf: URL(fileURLWithPath: aside.salvage.path)))
    }

    @Test func `a store that a process owns is not set aside`() async throws {
        try await withQueue(directory) { _, _ in
            let code = await errorCode { _ = try await OfflineQueue.setAside(directory: directory.path) }
            #expect(code == .alreadyOwned)
        }
    }

    @Test func `damage that is detected later stops the queue, and the next start reports it`() async throws {
        let content = try await populated()
        // Enqueuing a request does not use this index, so the damage is found later.
        try overwrite(page: try rootPages(of: directory)["request_order"]!)
        try await withQueue(directory) { queue, store in
            let lanes = try? await store.restart()
            #expect(lanes == nil)
            let code = await errorCode { try await queue.populate(1, seed: 2) }
            #expect(code == .storeUnusable)
        }
        let error = await opening()
        #expect(error?.code == .storeUnusable && error?.message.contains("damaged") == true)
        let aside = try #require(try await OfflineQueue.setAside(directory: directory.path))
        #expect(try saved(aside) == content)
        #expect(await opening() == nil)
    }

    @Test func `a value of a wrong type is damage that ends the queue, not the process`() async throws {
        _ = try await populated()
        try edit(directory, schemaEdit("replace(sql, 'STRICT', '')"))
        try edit(directory, "UPDATE request SET attempts = 'three'")
        try edit(directory, schemaEdit("rtrim(sql) || ' STRICT'"))
        try await withQueue(directory) { _, store in
            #expect(await errorCode { _ = try await store.edit(.hold, ["a3"]) } == .storeUnusable)
            #expect(await errorCode { _ = try await store.enqueue(try new("late")) } == .storeUnusable)
        }
        let error = try #require(await opening())
        #expect(error.code == .storeUnusable && error.message.contains("`attempts` has an invalid value"))
    }

    @Test func `a state that is invalid for its table is damage`() async throws {
        _ = try await populated()
        try edit(
            directory,
            "PRAGMA ignore_check_constraints = ON; UPDATE request SET state = 'dead' WHERE id = 'a3'"
        )
        try await withQueue(directory) { _, store in
            #expect(await errorCode { _ = try await store.details(of: "a3") } == .storeUnusable)
        }
        #expect(await opening()?.message.contains("`state` has an invalid value: `dead`") == true)
    }

    @Test func `damage that a read found ends a queue that does not write`() async throws {
        _ = try await populated()
        try edit(
            directory,
            "PRAGMA ignore_check_constraints = ON; UPDATE request SET state = 'dead' WHERE id = 'a3'"
        )
        try await withQueue(directory) { _, store in
            try await store.check()
            #expect(await errorCode { _ = try await store.details(of: "a3") } == .storeUnusable)
            #expect(await errorCode { try await store.check() } == .storeUnusable)
        }
    }

    private func schemaEdit(_ change: String) -> String {
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = \(change) WHERE name = 'request'"
    }

    @Test func `the damage marker is removed when a full check finds nothing`() async throws {
        _ = try await populated()
        let index = try rootPages(of: directory)["request_order"]!
        let page = try Data(contentsOf: URL(fileURLWithPath: database))[(index - 1) * 4096..<index * 4096]
        try overwrite(page: index)
        try await withQueue(directory) { _, store in _ = try? await store.restart() }
        #expect(await opening()?.code == .storeUnusable)
        // Restores the page, as if only the connection to the disk had been faulty.
        try change { $0.replaceSubrange((index - 1) * 4096..<index * 4096, with: page) }
        #expect(await opening()?.code == .storeUnusable)
        #expect(try await OfflineQueue.setAside(directory: directory.path) == nil)
        #expect(await opening() == nil)
    }

    @Test func `an interrupted set-aside continues`() async throws {
        let content = try await populated()
        let target = "\(directory.path)/damaged-before"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
        try Data("why\n\(target)\n".utf8).write(to: URL(fileURLWithPath: "\(directory.path)/queue.damaged"))
        try FileManager.default.moveItem(atPath: database, toPath: "\(target)/queue.sqlite")
        #expect(await opening()?.code == .storeUnusable)
        let aside = try #require(try await OfflineQueue.setAside(directory: directory.path))
        #expect(aside.directory == target && aside.reason == "why")
        #expect(try saved(aside) == content)
        #expect(await opening() == nil)
    }
}

internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

// Tests which requests are salvaged if SQLite cannot find their pages.

extension DamagedStoreTests {
    @Test func `a damaged first page loses nothing`() async throws {
        let original = try await populated()
        try overwrite(page: 1)
        let (aside, _) = try await salvage(original)
        let report = try #require(aside?.salvage)
        #expect(report.isWhole && report.waiting == Self.count && report.counted == Self.count, "\(report)")
        #expect(try saved(try #require(aside)) == original)
    }

    @Test func `a damaged root page of the requests loses nothing`() async throws {
        let original = try await populated()
        try overwrite(page: try rootPages(of: directory)["request"]!)
        let (aside, _) = try await salvage(original)
        let report = try #require(aside?.salvage)
        #expect(report.waiting == Self.count && report.counted == Self.count, "\(report)")
        #expect(try saved(try #require(aside)) == original)
    }

    @Test func `bodies are salvaged without the root page of their table`() async throws {
        let original = try await populated()
        try overwrite(page: try rootPages(of: directory)["body"]!)
        let (aside, _) = try await salvage(original)
        #expect(try saved(try #require(aside)) == original, "\(String(describing: aside?.salvage))")
    }

    @Test func `without the schema the tables are recognized by their rows`() async throws {
        let original = try await populated()
        try overwriteSchema()
        let (aside, ids) = try await salvage(original)
        let content = try saved(try #require(aside))
        #expect(ids == original.ids && aside?.salvage.isWhole == false, "\(String(describing: aside))")
        // The dependencies are lost with their table, so the requests that have some are held.
        let expected = original.requests.map { $0.state == .blocked || $0.state == .held ? .held : $0.state }
        #expect(content.requests.map(\.state) == expected && content.bodies == original.bodies)
        #expect(content.requests.map(\.lane) == original.requests.map(\.lane))
    }

    @Test func `the rows of free pages are not taken for requests`() async throws {
        let original = try await populated()
        try leaveRowsInFreePages()
        try overwriteSchema()
        let (aside, ids) = try await salvage(original)
        #expect(aside != nil && ids == original.ids)
    }

    /// Without the first page, nothing shows which pages are free.
    @Test func `requests from pages that may be free are held`() async throws {
        let original = try await populated()
        try leaveRowsInFreePages()
        try overwriteSchema()
        try overwrite(page: 1)
        let (aside, ids) = try await salvage(original)
        let content = try saved(try #require(aside))
        #expect(Set(ids).isSuperset(of: original.ids) && ids.contains { $0.hasPrefix("old-") }, "\(ids)")
        #expect(
            content.requests.allSatisfy {
                $0.state == .held && $0.lastError?.contains("ended already") == true
            }
        )
    }

    @Test(arguments: [true, false])
    func `requests that only the log contains are salvaged without the database`(isEmpty: Bool) async throws {
        let copy = TemporaryDirectory()
        try await withQueue(directory) { queue, _ in
            for index in 0..<10 { try await queue.enqueue(id: "a\(index)") }
            try FileManager.default.copyItem(atPath: directory.path, toPath: copy.path)
        }
        let database = "\(copy.path)/queue.sqlite"
        if isEmpty {
            try Data().write(to: URL(fileURLWithPath: database))
        } else {
            try FileManager.default.removeItem(atPath: database)
        }
        let aside = try #require(try await OfflineQueue.setAside(directory: copy.path))
        #expect(aside.salvage.waiting == 10 && aside.salvage.isWhole, "\(aside)")
        #expect(try DamagedStoreTests(copy).saved(aside).ids == (0..<10).map { "a\($0)" })
        #expect(FileManager.default.fileExists(atPath: "\(aside.directory)/queue.sqlite-wal"))
        // An optimized build releases a variable after its last use, which would delete the directory.
        withExtendedLifetime(copy) {}
    }

    @Test func `salvage leaves no other files`() async throws {
        let original = try await populated()
        try overwrite(page: 1)
        let (aside, _) = try await salvage(original)
        let found = try FileManager.default.contentsOfDirectory(atPath: try #require(aside).directory)
        #expect(
            Set(found).isSubset(of: [
                "queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "spool", "export.ndjson",
            ])
        )
    }

    /// Overwrites the leaf pages of the schema's tree. Its root is the first page, where the header of the file comes
    /// first.
    private func overwriteSchema() throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: database))
        func number(_ offset: Int, _ count: Int) -> Int {
            data[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
        }
        // https://www.sqlite.org/fileformat2.html: page type 5 is an interior page of a table.
        try #require(number(100, 1) == 5)
        let leaves = (0..<number(103, 2)).map { number(number(112 + 2 * $0, 2), 4) } + [number(108, 4)]
        for leaf in leaves { try overwrite(page: leaf) }
    }

    /// Adds rows of requests to another table, and deletes this table. The pages become free, and keep their content.
    private func leaveRowsInFreePages() throws {
        let database = try DatabaseQueue(path: self.database)
        try database.writeWithoutTransaction {
            let sql = try String.fetchOne($0, sql: "SELECT sql FROM sqlite_schema WHERE name = 'request'")
            let copy = try #require(sql?.replacing("CREATE TABLE request", with: "CREATE TABLE old"))
            try $0.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA secure_delete = OFF; \(copy)")
            try $0.execute(sql: "INSERT INTO old SELECT * FROM request")
            try $0.execute(
                sql: """
                    UPDATE old SET id = 'old-' || id, replace_key = NULL, body_bytes = 0, body_file = NULL;
                    UPDATE old SET seq = seq + 1000
                    """
            )
            try $0.execute(sql: "DROP TABLE old")
        }
        try database.close()
    }
}

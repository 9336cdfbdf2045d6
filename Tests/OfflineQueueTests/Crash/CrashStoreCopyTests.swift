internal import GRDB
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

@Suite struct CrashStoreCopyTests {
    @Test func `a store that was killed while it was created has no rows`() async throws {
        let directory = try ScratchDirectory(), scratch = try ScratchDirectory()
        let database = try DatabaseQueue(path: directory.file("queue.sqlite"))
        try await database.write {
            try $0.execute(sql: "PRAGMA application_id = \(QueueSchema.applicationID)")
        }
        try database.close()
        let copy = try await CrashStoreCopy.reading(directory.path, scratch: scratch.path)
        #expect(copy.rows.isEmpty)
        #expect(copy.integrity == ["ok"])
    }
}

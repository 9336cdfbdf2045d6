internal import GRDB
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

@Suite struct CrashStoreCopyTests {
    /// Each version of the schema is created in a separate transaction, so a kill can leave a store at any version.
    @Test(arguments: ["1", "5"])
    func `a store that was killed while it was created has no rows`(version: String) async throws {
        let directory = try ScratchDirectory(), scratch = try ScratchDirectory()
        let database = try DatabaseQueue(path: directory.file("queue.sqlite"))
        try QueueSchema.migrator.migrate(database, upTo: version)
        try database.close()
        let copy = try await CrashStoreCopy.reading(directory.path, scratch: scratch.path)
        #expect(copy.rows.isEmpty)
        #expect(copy.integrity == ["ok"])
    }
}

internal import OfflineQueue
internal import Testing

/// Statements that run for every request must cost the same in a full queue as in an empty one. None of them may scan a
/// table or sort.
@Suite struct StatementPlanTests {
    private let directory = TemporaryDirectory()

    @Test func `no statement that is run for a request scans or sorts`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        for (name, sql) in StoreStatements.flat {
            for step in try await store.plan(of: sql) {
                // `meta` has one row, constant lists are short, and a scan that uses an index starts at the right
                // place. The steps that produce the rows of a subquery are checked on their own.
                let isShort =
                    step == "SCAN meta" || step.contains("CONSTANT") || step.contains("USING INDEX")
                    || step.hasPrefix("SCAN (subquery")
                let isScan = step.hasPrefix("SCAN") && !isShort
                #expect(!isScan, "\(name): \(step)")
                #expect(!step.contains("TEMP B-TREE"), "\(name): \(step)")
            }
        }
        await store.close()
    }
}

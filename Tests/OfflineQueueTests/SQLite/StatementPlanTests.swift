internal import OfflineQueue
internal import Testing

/// The query plans of the statements that run for every request. Their execution time must not depend on the length of
/// the queue, so no plan may scan a table or sort.
@Suite struct StatementPlanTests {
    private let directory = TemporaryDirectory()

    @Test func `no statement that is run for a request scans or sorts`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        for (name, sql) in StoreStatements.flat {
            for step in try await store.plan(of: sql) {
                // These scans are permitted: of `meta`, which has one row, of constant lists, and of an index, which
                // starts at the right place. The steps of a subquery are separate steps of the plan.
                let isShort =
                    step == "SCAN meta" || step.contains("CONSTANT") || step.contains("USING INDEX")
                    || step.hasPrefix("SCAN (subquery") || step.hasPrefix("SCAN json_each")
                let isScan = step.hasPrefix("SCAN") && !isShort
                #expect(!isScan, "\(name): \(step)")
                #expect(!step.contains("TEMP B-TREE"), "\(name): \(step)")
            }
        }
        await store.close()
    }

    @Test func `the requests of one user are found without reading those of others`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let oldest = try await store.plan(of: StoreStatements.oldestOfUser)
        #expect(oldest == ["SEARCH request USING INDEX request_submitter (submitter=?)"])
        let plan = try await store.plan(of: StoreStatements.finishedSurplus)
        #expect(plan == ["SEARCH history USING INDEX history_submitter (state=? AND submitter=?)"])
        // The users are those who have finished requests, not all who have ever submitted one.
        let search = "SEARCH history USING COVERING INDEX history_submitter (state=? AND submitter>?"
        let steps = try await store.plan(of: StoreStatements.submitters).filter { $0.contains("history") }
        #expect(steps.count == 2 && steps.allSatisfy { $0.hasPrefix(search) }, "\(steps)")
        await store.close()
    }

    @Test func `the search for a replacement reads only newer finished requests, in their order`()
        async throws
    {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let plan = try await store.plan(of: StoreStatements.finishedReplacements)
        #expect(plan.count == 1 && plan[0].hasPrefix("SEARCH history USING INDEX"), "\(plan)")
        #expect(plan.first?.hasSuffix("(seq>?)") == true, "\(plan)")
        await store.close()
    }

    /// A user may have a FIFO lane of many blocked requests. For each of them, no statement may read all dependencies.
    @Test func `the search for requests that wait for each other follows only their dependencies`()
        async throws
    {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let names = ["depends", "request", "place", "ahead", "earlier", "waiting"]
        for sql in [StoreStatements.isNeeded, StoreStatements.cycle, StoreStatements.laterDependencies] {
            let steps = try await store.plan(of: sql)
                .filter { step in names.contains { step.contains(" \($0) ") } }
            #expect(!steps.isEmpty && steps.allSatisfy { $0.hasPrefix("SEARCH ") }, "\(steps)")
            // The requests of a FIFO lane that wait for no other are not read.
            let ahead = steps.filter { $0.contains(" ahead ") }
            #expect(ahead.allSatisfy { $0.contains("request_waits (lane_id=? AND seq<?") }, "\(steps)")
        }
        await store.close()
    }

    @Test func `a lane's held requests are found without reading its other requests`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let plan = try await store.plan(of: StoreStatements.held)
        let index = "SEARCH request USING INDEX request_held (lane_id=? AND hold_reason=?"
        #expect(plan.first?.hasPrefix(index) == true, "\(plan)")
        await store.close()
    }

    @Test func `the requests of a rejected credential are found without reading those of others`()
        async throws
    {
        let store = try await SQLiteQueueStore(directory: directory.path)
        for sql in [StoreStatements.nextRejected, StoreStatements.rejectedWithCredential] {
            let plan = try await store.plan(of: sql)
            let index = "SEARCH request USING INDEX request_rejected (lane_id=? AND credential=?"
            #expect(plan.first?.hasPrefix(index) == true, "\(plan)")
        }
        await store.close()
    }
}

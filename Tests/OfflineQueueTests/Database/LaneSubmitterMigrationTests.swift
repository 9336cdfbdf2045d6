internal import OfflineQueue
internal import Testing

/// The migration to version 14, since which users do not share lanes.
@Suite struct LaneSubmitterMigrationTests {
    private let directory = TemporaryDirectory(marker: "migration")
    private let clock = TestStoreClock()

    @Test func `the requests of a lane are divided among their submitters, in their order`() async throws {
        let users: [UInt32?] = [7, nil, 8, 7, nil]
        let old = try await directory.openStore(clock: clock)
        for (number, user) in users.enumerated() {
            let request = try new("\(number)", isFIFO: true) {
                ($0.lane, $0.submitter) = ("l", user.map { Submitter(user: $0) })
            }
            try await old.enqueue(request)
        }
        _ = try await old.setPaused(true, lanes: LaneSelection(label: "l"))
        await old.close()
        // In version 13, all requests were in one lane.
        try edit(
            directory,
            """
            UPDATE request SET lane_id = 1; DELETE FROM lane WHERE id > 1;
            UPDATE lane SET (requests, bytes) = (SELECT count(*), sum(size) FROM request);
            """ + OldSchema.withoutVersion14
        )
        let store = try await directory.openStore(clock: clock)
        #expect(try await store.archive.inspect().isSound)
        #expect(try await store.statistics().pausedLanes.map(\.submitter) == [nil, 7, 8])
        _ = try await store.setPaused(false, lanes: nil)
        let lanes = try await store.reopen(releasing: [])
        var sent: [UInt32?: [String]] = [:]
        for lane in lanes {
            while let request = try await store.claim(1, of: lane.id).requests.first {
                sent[lane.key.submitter, default: []].append(request.id)
                try await store.conclude(request, .delivered(status: 200))
            }
        }
        #expect(sent == [nil: ["1", "4"], 7: ["0", "3"], 8: ["2"]])
        await store.close()
    }
}

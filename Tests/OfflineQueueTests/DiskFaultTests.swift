internal import Testing

/// Every call that SQLite makes to the disk in the life of a store fails once.
@Suite(.serialized, .timeLimit(.minutes(10))) struct DiskFaultTests {
    /// Writes are the most, and fail in two ways: at their CI share each of these either once or for good.
    private static let cases = DiskFault.Kind.all.flatMap { [($0, false), ($0, true)] }.filter {
        kind,
        persists in
        CrashScale.isSoak || (kind != .writeEIO || !persists) && (kind != .writeENOSPC || persists)
    }

    @Test(arguments: cases)
    func `no call that fails loses what was accepted, and the store says so and stops`(
        kind: DiskFault.Kind,
        persists: Bool
    ) async throws {
        for aftermath in DiskFaultSweep.Aftermath.allCases {
            let sweep = DiskFaultSweep(
                kind: kind,
                persists: persists,
                aftermath: aftermath,
                isFromCreation: CrashScale.isSoak || (kind == .syncEIO && !persists)
            )
            try await check(sweep)
        }
    }

    @Test(arguments: DiskFaultSweep.Aftermath.allCases)
    func `whichever call is the last, what was accepted is there afterwards`(
        aftermath: DiskFaultSweep.Aftermath
    ) async throws {
        try await check(
            DiskFaultSweep(kind: .end, persists: true, aftermath: aftermath, isFromCreation: true)
        )
    }

    @Test func `the sweep notices a disk that only says that it has written`() async throws {
        let sweep = DiskFaultSweep(
            kind: .syncLie,
            persists: true,
            aftermath: .whatWasSynced,
            isFromCreation: false
        )
        #expect(try await !sweep.run().lost.isEmpty)
    }

    private func check(_ sweep: DiskFaultSweep) async throws {
        let found = try await sweep.run()
        print(
            "disk fault: \(sweep.kind.testDescription), \(sweep.persists ? "and ever after" : "once"), then "
                + "\(sweep.aftermath): \(found.runs) runs, \(found.lost.count) lost"
        )
        #expect(found.lost == [])
        #expect(found.writtenAfterFailure == [])
        #expect(found.unclear == [])
        #expect(found.silent == [])
        #expect(found.incomplete == [])
        // A store that exists already is opened by few calls of some kinds, but no kind is never called.
        #expect(found.runs > 1)
    }
}

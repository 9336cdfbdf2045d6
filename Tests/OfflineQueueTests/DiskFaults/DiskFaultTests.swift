internal import NetwatchTestSupport
internal import Testing

/// Stores whose disk fails, at every single call that SQLite makes to it.
@Suite(.serialized, .timeLimit(.minutes(30))) struct DiskFaultTests {
    /// The sweeps for every kind of fault, temporary and permanent, each followed by the end of the process or by a
    /// power cut.
    private static let sweeps: [DiskFaultSweep] = DiskFault.Kind.all.flatMap { kind in
        [false, true].flatMap { persists in
            DiskFaultSweep.SurvivingData.allCases.map { survivingData in
                DiskFaultSweep(
                    kind: kind,
                    persists: persists,
                    survivingData: survivingData,
                    isFromCreation: CheckSize.current == .full || kind == .syncEIO
                )
            }
        }
    }.filter { $0.isChosen }

    @Test func `no failed system call loses an accepted request, and the store reports it and stops`()
        async throws
    {
        try await check(Self.sweeps, "disk faults")
    }

    @Test func `accepted requests survive a crash at any system call`() async throws {
        let survivors = DiskFaultSweep.SurvivingData.allCases
        let chosen = CheckSize.current == .small ? [.whatWasSynced] : survivors
        let sweeps = chosen.map { survivingData in
            DiskFaultSweep(kind: .end, persists: true, survivingData: survivingData, isFromCreation: true)
        }
        try await check(sweeps, "last calls")
    }

    @Test func `the disk fault sweep detects a disk that does not sync`() async throws {
        let sweep = DiskFaultSweep(
            kind: .syncLie,
            persists: true,
            survivingData: .whatWasSynced,
            isFromCreation: false
        )
        #expect(try await !sweep.run().lost.isEmpty)
    }

    private func check(_ sweeps: [DiskFaultSweep], _ name: String) async throws {
        var found = DiskFaultSweep.Findings()
        for sweep in sweeps {
            let lives = try await sweep.run(&found)
            #expect(lives > 1, "\(sweep) never failed")
        }
        print(
            "\(name): \(sweeps.count) sweeps, \(found.failures) failing calls, \(found.lost.count) lost, "
                + "\(found.writtenAfterFailure.count) written after a failure, \(found.silent.count) silent, "
                + "\(found.unclear.count) unclear"
        )
        #expect(found.all.prefix(20) == [])
    }
}

extension DiskFaultSweep {
    /// Whether this run of the tests includes the sweep. Reads and writes are the most frequent calls. Of the four
    /// sweeps for each of these kinds, CI runs two and a small check none.
    fileprivate var isChosen: Bool {
        let hasFewCalls = ![.readEIO, .writeEIO, .writeENOSPC].contains(kind)
        let isInHalf = persists == (survivingData == .everything)
        return CheckSize.choose(
            small: hasFewCalls && isInHalf,
            medium: hasFewCalls || isInHalf,
            full: true
        )
    }
}

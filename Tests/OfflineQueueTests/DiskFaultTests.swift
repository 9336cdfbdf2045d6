internal import CNetwatchFaultVFS
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Every call that SQLite makes to the disk in the life of a store fails once, in one life after the other.
@Suite(.serialized) struct DiskFaultTests {
    /// What is on the disk afterwards.
    enum Aftermath: CaseIterable {
        /// Whatever was written: the process ended.
        case everything
        /// What was synced: the power was cut.
        case whatWasSynced
    }

    /// What a sweep over the calls of one kind found, each with the number of the call that failed.
    fileprivate struct Findings {
        var runs = 0
        /// Promised, and absent when the store was opened again.
        var lost: [String] = []
        var writtenAfterFailure: [String] = []
        /// Errors that do not say what happened to which file.
        var unclear: [String] = []
        /// Nobody was told.
        var silent: [String] = []
    }

    private static let forgetful = "forgetful-queue"

    @Test(arguments: DiskFault.Kind.all, [false, true])
    func `no call that fails loses what was accepted, and the store says so and stops`(
        kind: DiskFault.Kind,
        persists: Bool
    ) async throws {
        for aftermath in Aftermath.allCases {
            check(
                try await sweep(kind, persists: persists, aftermath),
                "\(kind.testDescription), \(persists), \(aftermath)"
            )
        }
    }

    @Test(arguments: Aftermath.allCases)
    func `whichever call is the last, what was accepted is there afterwards`(aftermath: Aftermath)
        async throws
    {
        check(try await sweep(.end, persists: true, aftermath), "\(aftermath)")
    }

    @Test func `the sweep notices a disk that lies`() async throws {
        let found = try await sweep(.syncLie, persists: true, .whatWasSynced)
        #expect(!found.lost.isEmpty)
    }

    private func check(_ found: Findings, _ name: String) {
        print("disk fault: \(name): \(found.runs) runs, \(found.lost.count) lost")
        #expect(found.lost == [])
        #expect(found.writtenAfterFailure == [])
        #expect(found.unclear == [])
        #expect(found.silent == [])
        #expect(found.runs > 1)
    }

    // MARK: Sweeping

    /// Lets the first call of a kind fail, then the second, and so on until a run makes fewer.
    private func sweep(_ kind: DiskFault.Kind, persists: Bool, _ aftermath: Aftermath) async throws
        -> Findings
    {
        try DiskFault.install()
        netwatch_forgetting_arm(Self.forgetful, 0, 1)
        var findings = Findings()
        while try await run(kind, first: findings.runs + 1, persists: persists, aftermath, &findings) {}
        return findings
    }

    /// Returns whether a call failed.
    private func run(
        _ kind: DiskFault.Kind,
        first: Int,
        persists: Bool,
        _ aftermath: Aftermath,
        _ findings: inout Findings
    ) async throws -> Bool {
        findings.runs += 1
        let scratch = try ScratchDirectory(in: "/dev/shm")
        let directory = scratch.file(aftermath == .whatWasSynced ? Self.forgetful : "lasting")
        let fault = try DiskFault(kind, at: directory, first: first, persists: persists)
        let calls = fault.calls
        let script = await DiskFaultScript.run(in: directory, calls: calls)
        let hasStruck = calls() >= first
        fault.end()
        netwatch_forgetting_cut(directory)
        findings.add(script, first: first, directory: directory)
        do {
            findings.lost += try await missing(script, in: directory).map { "call \(first): \($0)" }
        } catch {
            findings.lost.append("call \(first): \(error)")
        }
        if !hasStruck { #expect(script.isComplete, "\(script.errors)") }
        return hasStruck
    }

    private func missing(_ script: DiskFaultScript, in directory: String) async throws -> [String] {
        let store = try await SQLiteQueueStore(directory: directory)
        var missing: [String] = []
        for id in script.accepted {
            let state = try await store.details(of: id)?.summary.state
            if state == nil { missing.append(id) }
            if script.delivered.contains(id), state != .delivered { missing.append("\(id)'s delivery") }
        }
        await store.close()
        return missing
    }
}

extension DiskFaultTests.Findings {
    fileprivate mutating func add(_ script: DiskFaultScript, first: Int, directory: String) {
        writtenAfterFailure += script.writtenAfterFailure.map { "call \(first): \($0)" }
        unclear += script.errors.filter { !Self.isClear($0, directory) }.map { "call \(first): \($0)" }
        if script.callsBeforeClosing >= first, script.errors.isEmpty, !script.hasFailedToCheckpoint {
            silent.append("call \(first)")
        }
    }

    /// Whether an error says what happened, and to which file.
    private static func isClear(_ error: any Error, _ directory: String) -> Bool {
        guard let error = error as? QueueError, error.path?.hasPrefix(directory) == true else { return false }
        let codes: Set<QueueError.Code> = [.storeFailed, .storeUnusable, .directoryUnusable]
        let reasons = ["disk I/O error", "full", "unable to open", "instead of wal"]
        return codes.contains(error.code) && reasons.contains { error.message.contains($0) }
    }
}

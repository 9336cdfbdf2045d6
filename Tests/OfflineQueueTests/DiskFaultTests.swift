internal import CNetwatchFaultVFS
internal import Foundation
internal import OfflineQueue
internal import Testing

/// Every call that SQLite makes to the disk fails once, in the life of one store after the other.
@Suite(.serialized) struct DiskFaultTests {
    /// What a sweep over the calls of one kind found.
    private struct Findings {
        /// After how many runs one met no fault.
        var runs = 0
        /// Promised, and absent when the store was opened again.
        var lost: [String] = []
        var writtenAfterFailure: [String] = []
        var unclear: [String] = []
        /// Faults that no call of the store told of.
        var silent = 0
    }

    @Test(arguments: DiskFault.Kind.all, [false, true])
    func `no failing call loses what was accepted, and the store says so`(
        kind: DiskFault.Kind,
        persists: Bool
    ) async throws {
        let found = try await sweep(kind, persists: persists)
        print(
            "disk fault \(kind.testDescription), persists \(persists): \(found.runs) runs, \(found.silent) silent"
        )
        #expect(found.lost == [])
        #expect(found.writtenAfterFailure == [])
        #expect(found.unclear == [])
        #expect(found.runs > 1 || kind == .truncateEIO)
    }

    @Test func `the sweep notices a disk that lies`() async throws {
        let found = try await sweep(.syncLie, persists: true)
        #expect(!found.lost.isEmpty)
    }

    // MARK: Sweeping

    /// Lets the first call of a kind fail, then the second, and so on until a run makes fewer.
    private func sweep(_ kind: DiskFault.Kind, persists: Bool) async throws -> Findings {
        try DiskFault.install()
        netwatch_forgetting_arm("netwatch-forgetful", 0, 1)
        var findings = Findings()
        for first in 1... {
            findings.runs += 1
            let isClean = try await run(kind, first: first, persists: persists, &findings)
            if isClean { return findings }
        }
        return findings
    }

    /// Returns whether no call failed.
    private func run(
        _ kind: DiskFault.Kind,
        first: Int,
        persists: Bool,
        _ findings: inout Findings
    ) async throws -> Bool {
        let directory = TemporaryDirectory(marker: "forgetful")
        let fault = try DiskFault(kind, at: directory.path, first: first, persists: persists)
        let script = await DiskFaultScript.run(in: directory.path)
        let hasStruck = fault.calls >= first
        fault.end()
        // What the disk does not have now it will never have.
        netwatch_forgetting_cut(directory.path)
        let place = "call \(first)"
        findings.lost += try await missing(script, in: directory.path).map { "\(place): \($0)" }
        findings.writtenAfterFailure += script.writtenAfterFailure.map { "\(place): \($0)" }
        findings.unclear += script.errors.filter { !isClear($0, directory.path) }.map { "\(place): \($0)" }
        if hasStruck, script.errors.isEmpty { findings.silent += 1 }
        if !hasStruck { #expect(script.isComplete, "\(script.errors)") }
        return !hasStruck
    }

    private func missing(_ script: DiskFaultScript, in directory: String) async throws -> [String] {
        let store = try await SQLiteQueueStore(directory: directory)
        let states = try await store.states()
        await store.close()
        let absent = script.accepted.filter { states[$0] == nil }
        return absent + script.delivered.filter { states[$0] != .delivered }.map { "\($0) delivered" }
    }

    /// Whether an error says what happened, and to which file.
    private func isClear(_ error: any Error, _ directory: String) -> Bool {
        guard let error = error as? QueueError, error.path?.hasPrefix(directory) == true else { return false }
        let codes: Set<QueueError.Code> = [.storeFailed, .storeUnusable, .directoryUnusable]
        let reasons = ["disk I/O error", "full", "unable to open"]
        return codes.contains(error.code) && reasons.contains { error.message.contains($0) }
    }
}

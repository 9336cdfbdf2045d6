internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue

/// A series of runs of ``DiskFaultScript``. In run N, the Nth call of one kind fails. The series ends when a run makes
/// fewer than N calls.
struct DiskFaultSweep {
    /// What remains on the disk after a run.
    enum SurvivingData: CaseIterable {
        /// Everything that was written, as after the end of the process.
        case everything
        /// Everything that was synced, as after a power cut.
        case whatWasSynced
    }

    /// The problems that were found. Each names the call that failed.
    struct Findings {
        /// The number of calls that failed.
        var failures = 0
        /// Accepted requests that were missing when the store was opened again, or the error that prevented opening it.
        var lost: [String] = []
        var writtenAfterFailure: [String] = []
        /// Errors that do not say what happened to which file.
        var unclear: [String] = []
        /// Failed calls that the store did not report.
        var silent: [String] = []
        /// Runs in which no call failed but not every step succeeded.
        var incomplete: [String] = []

        /// All problems.
        var all: [String] { lost + writtenAfterFailure + unclear + silent + incomplete }
    }

    let kind: DiskFault.Kind
    let persists: Bool
    let survivingData: SurvivingData
    /// Whether each run creates its store, which takes most of the calls. If not, it starts with a copy of an existing
    /// store.
    let isFromCreation: Bool

    private static let parent = "/dev/shm"

    func run() async throws -> Findings {
        var findings = Findings()
        try await run(&findings)
        return findings
    }

    /// - Returns: The number of runs.
    @discardableResult
    func run(_ findings: inout Findings) async throws -> Int {
        try DiskFault.install()
        let scratch = try ScratchDirectory(in: Self.parent)
        let template = scratch.file("template")
        if !isFromCreation { await (try SQLiteQueueStore(directory: template)).close() }
        var first = 1
        while try await live(first, template, &findings) { first += 1 }
        return first
    }

    /// Runs the script once, and returns whether a call failed.
    private func live(_ first: Int, _ template: String, _ findings: inout Findings) async throws -> Bool {
        let scratch = try ScratchDirectory(in: Self.parent)
        let directory =
            survivingData == .whatWasSynced
            ? try PowerCutDisk.directory(in: scratch) : scratch.file("queue")
        if !isFromCreation { try FileManager.default.copyItem(atPath: template, toPath: directory) }
        let fault = try DiskFault(kind, at: directory, first: first, persists: persists)
        let calls = fault.calls
        let script = await DiskFaultScript.run(in: directory, calls: calls)
        let hasStruck = calls() >= first
        fault.end()
        PowerCutDisk.cutPower(in: directory)
        if hasStruck { findings.failures += 1 }
        let missing = await missing(script, in: directory)
        findings.add(script, missing, hasStruck: hasStruck, at: "\(self), call \(first)", directory)
        // The store opens the database for a check before it opens it for use. If only the first call fails, this is
        // not an error.
        let isMadeGood = kind == .openEIO && !persists
        if script.callsBeforeClosing >= first, !script.hasTold, !isMadeGood {
            findings.silent.append("\(self), call \(first)")
        }
        return hasStruck
    }

    // MARK: Checks

    private func missing(_ script: DiskFaultScript, in directory: String) async -> [String] {
        do {
            let store = try await SQLiteQueueStore(directory: directory)
            var missing: [String] = []
            for id in script.accepted {
                let state = try await store.details(of: id)?.summary.state
                if state == nil { missing.append(id) }
                if script.delivered.contains(id), state != .delivered { missing.append("\(id)'s delivery") }
            }
            await store.close()
            return missing
        } catch {
            return ["\(error)"]
        }
    }
}

extension DiskFaultSweep: CustomStringConvertible {
    var description: String {
        "\(kind.testDescription) \(persists ? "for good" : "once"), \(isFromCreation ? "new" : "old") store, "
            + "then \(survivingData)"
    }
}

extension DiskFaultSweep.Findings {
    fileprivate mutating func add(
        _ script: DiskFaultScript,
        _ missing: [String],
        hasStruck: Bool,
        at place: String,
        _ directory: String
    ) {
        lost += missing.map { "\(place): \($0)" }
        writtenAfterFailure += script.writtenAfterFailure.map { "\(place): \($0)" }
        unclear += script.errors.filter { !Self.isClear($0, directory) }.map { "\(place): \($0)" }
        if !hasStruck, !script.isComplete { incomplete.append("\(place): \(script.errors)") }
    }

    /// Returns whether an error says what happened, and to which file.
    private static func isClear(_ error: any Error, _ directory: String) -> Bool {
        guard let error = error as? QueueError, error.path?.hasPrefix(directory) == true else { return false }
        let codes: Set<QueueError.Code> = [
            .storeFailed, .storeUnusable, .storeUnavailable, .directoryUnusable,
        ]
        let reasons = ["disk I/O error", "full", "unable to open", "instead of wal"]
        return codes.contains(error.code) && reasons.contains { error.message.contains($0) }
    }
}

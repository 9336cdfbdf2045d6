internal import Foundation
internal import NetwatchEventLoop

/// Scans a store at intervals, piece by piece, and keeps the record of its scans.
final class StoreScanner: Sendable {
    private struct State {
        var record = ScanRecord()
        var isLoaded = false
        var interval: Duration
    }

    private let archive: any QueueArchive
    private let timing: ScanTiming
    private let state: Lock<State>

    init(_ archive: any QueueArchive, every interval: Duration, _ timing: ScanTiming) {
        self.archive = archive
        self.timing = timing
        state = Lock(State(interval: interval))
    }

    /// What the scans have found. Empty before ``load()``.
    var scan: QueueScan { record.scan }

    private var record: ScanRecord { state.withLock { $0.record } }

    /// Replaces the interval. A scan in progress continues, unless the interval is zero.
    func use(interval: Duration) { state.withLock { $0.interval = interval } }

    /// Replaces what the scans have found with the result of a verification.
    func replaceFindings(with report: QueueVerification) {
        state.withLock { $0.record.replaceFindings(with: report, at: Date()) }
    }

    /// Reads the record of earlier scans, unless it was read already. Must not be called during a scan.
    func load() async {
        guard !state.withLock(\.isLoaded) else { return }
        let stored = await archive.scanRecord()
        state.withLock { ($0.record, $0.isLoaded) = (stored, true) }
    }

    /// Scans until the task is cancelled. Called once.
    ///
    /// - Parameter warn: Called with the first damage of each scan.
    func run(warn: @Sendable (QueueVerification.Finding) async -> Void) async {
        await load()
        var saved = (record: record, time: ContinuousClock.now)
        var idleSince = ContinuousClock.now
        await wait(timing.startDelay)
        while !Task.isCancelled {
            guard isDue(idleSince) else {
                // A verification may have replaced the findings.
                saved = (await save(after: saved.record), .now)
                await wait(timing.wait)
                continue
            }
            guard await readPiece(warn) else {
                await wait(timing.wait)
                continue
            }
            let isComplete = record.next == nil
            if isComplete { idleSince = .now }
            if isComplete || ContinuousClock.now - saved.time >= timing.recordInterval {
                saved = (await save(after: saved.record), .now)
            }
        }
        _ = await save(after: saved.record)
    }

    private func isDue(_ idleSince: ContinuousClock.Instant) -> Bool {
        let (record, interval) = state.withLock { ($0.record, $0.interval) }
        return record.isDue(every: interval, after: ContinuousClock.now - idleSince, at: Date())
    }

    /// Waits until the time is over or the task is cancelled.
    private func wait(_ time: Duration) async { try? await Task.sleep(for: time, clock: .continuous) }

    /// Reads the next piece of the scan, and adds the result to the record.
    ///
    /// - Returns: `false` if the piece cannot be read now, for example because the process has no free descriptor.
    private func readPiece(_ warn: (QueueVerification.Finding) async -> Void) async -> Bool {
        let position = state.withLock { $0.record.begin(at: Date()) }
        guard let piece = try? await archive.scan(position, timing) else { return false }
        let first = state.withLock { $0.record.add(piece, at: Date()) }
        if let first { await warn(first) }
        return true
    }

    /// Stores the record if it has changed. If the disk is full, the next start repeats a part of the scan.
    ///
    /// - Parameter saved: The record that was stored last.
    /// - Returns: The record that is stored now.
    private func save(after saved: ScanRecord) async -> ScanRecord {
        let record = record
        guard record != saved, (try? await archive.keep(record)) != nil else { return saved }
        return record
    }
}

internal import Foundation
internal import NetwatchEventLoop

/// The background tasks. ``start()`` starts them and ``stop()`` cancels them.
extension OfflineQueue {
    /// Passes lanes with new requests to the scheduler. It does not matter which caller enqueued the requests.
    func followChanges() async {
        while !Task.isCancelled {
            let lanes = await store.changes.next()
            guard !lanes.isEmpty else { return }
            announce(lanes)
        }
    }

    /// Gives up expired requests, removes old history and checks the free space of the disk: when the next request
    /// expires, and at least once a minute.
    func sweep() async {
        while !Task.isCancelled {
            do {
                let next = try await store.expire()
                capacityWaiters.changed()
                await checkDisk()
                await resolveFinished()
                await sweeper.pause(next)
            } catch {
                return failed(error)
            }
        }
    }

    /// Warns when the disk becomes full, and when it has much more space again: each delivery frees some, which the next
    /// request takes. If the space cannot be read now, the next sweep checks it.
    private func checkDisk() async {
        let needed = StoredBody.maximumInlineBytes * (isDiskFull ? 16 : 1)
        guard let isFull = try? await store.isDiskFull(forBody: needed), isFull != isDiskFull else { return }
        isDiskFull = isFull
        warn(
            isFull
                ? "the disk is full, so new requests are refused, large ones first; accepted ones are still sent"
                : "the disk has space again, so new requests are accepted"
        )
    }

    /// Removes the spool files that a crash left without a row.
    ///
    /// A file is removed only if neither the index nor the table has a row that refers to it, because a damaged index
    /// may miss rows. Usually the index finds a row for every file, and the tables are not read.
    ///
    /// If reading the tables finds damage, the store stops, as with every read. Other errors are ignored, because
    /// these files only take up space. The next start tries again.
    func sweepSpool() async {
        let (archive, spool) = (store.archive, store.spool)
        guard let found = try? await spool.orphans(keeping: { archive.isFileNamed($0) }), !found.isEmpty,
            let unused = try? await archive.unusedFiles(among: found)
        else { return }
        let removed = Set(unused)
        _ = try? await spool.sweep { !removed.contains($0) }
    }

    /// Encrypts the stored requests that are not encrypted with the current key, after a key was added. A pass leaves a
    /// request in flight, and a body for which the disk has no space, to the next pass. Passes are repeated until no
    /// request is left that can be encrypted.
    func reseal() async {
        var isReported = false
        while !Task.isCancelled {
            let pass = await resealOnce()
            guard !hasFailed, !Task.isCancelled else { return }
            if let problem = pass.problem, !isReported {
                warn("some stored requests are not encrypted with the current key: \(problem)")
            }
            isReported = pass.problem != nil
            guard pass.postponed > 0 else { return }
            try? await Task.sleep(for: configuration.resealInterval, clock: .continuous)
        }
    }

    /// Examines all stored requests once, and encrypts those that are not encrypted with the current key.
    ///
    /// - Returns: The end of the pass. An error that does not end the store ends only this pass.
    private func resealOnce() async -> ResealCursor {
        var place = ResealCursor()
        do {
            while !Task.isCancelled, let next = try await store.reseal(after: place) { place = next }
        } catch {
            failed(error)
            place.postponed += 1
            place.problem = place.problem ?? (error as? QueueError)?.message ?? "\(error)"
        }
        return place
    }

    /// Checks once a second whether a read has found damage, and whether the store's files were removed, moved or
    /// replaced. If so, stops sending.
    ///
    /// Each commit makes the same checks. Without this task, a queue that does not write would continue.
    func watchStore() async {
        while (try? await Task.sleep(for: .seconds(1), clock: .continuous)) != nil {
            do {
                try await store.check()
            } catch {
                return failed(error)
            }
        }
    }

    /// Scans the store at intervals, and warns about the first damage that a scan finds.
    func scanStore() async {
        await scanner.run { finding in
            await self.warn(
                "a scan of the queue has found damage: \(finding); `netwatch doctor` shows what to do"
            )
        }
    }
}

/// The timer of ``OfflineQueue/sweep()``, which waits between two sweeps. A request that expires soon shortens the
/// wait.
final class Sweeper: Sendable {
    /// The maximum wait: 60 s. A step of the wall clock may make requests expire earlier than the last sweep found.
    static let longestPause: Duration = .seconds(60)
    /// The minimum wait: 20 ms. It prevents a busy loop if the store's clock is slower than the timer's clock.
    private static let shortestPause: Duration = .milliseconds(20)

    private struct State {
        var end: ContinuousClock.Instant?
        var timer: Task<Void, Never>?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    /// Waits for the given time, but at least ``shortestPause`` and at most ``longestPause``. Cancelling the task ends
    /// the wait.
    ///
    /// - Parameter wanted: The time to wait; `nil` for ``longestPause``.
    func pause(_ wanted: Duration?) async {
        let length = max(Self.shortestPause, min(wanted ?? Self.longestPause, Self.longestPause))
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { state in
                    state.waiter = continuation
                    let asked = state.end ?? .now + Self.longestPause
                    state.end = nil
                    set(min(asked, .now + length), &state)
                }
                if Task.isCancelled { fire() }
            }
        } onCancel: {
            fire()
        }
    }

    /// Shortens the current or next wait, so that it ends after `delay` at the latest.
    func shortenPause(to delay: Duration) {
        state.withLock { state in
            let end = ContinuousClock.now + max(Self.shortestPause, delay)
            guard end < state.end ?? end + .seconds(1) else { return }
            set(end, &state)
        }
    }

    private func set(_ end: ContinuousClock.Instant, _ state: inout State) {
        state.end = end
        state.timer?.cancel()
        guard state.waiter != nil else { return }
        state.timer = Task {
            guard (try? await Task.sleep(until: end, clock: .continuous)) != nil else { return }
            self.fire()
        }
    }

    private func fire() {
        let waiter = state.withLock { state in
            defer { (state.waiter, state.end) = (nil, nil) }
            state.timer?.cancel()
            return state.waiter
        }
        waiter?.resume()
    }
}

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

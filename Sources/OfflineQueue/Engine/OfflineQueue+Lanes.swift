internal import Dispatch
internal import NetwatchEventLoop

/// Lanes: the scheduler is notified of their changes, and reads them from the store.
extension OfflineQueue {
    /// The number of lanes that are read at once, so that other reads do not wait for all of them.
    private static let lanesAtOnce = 500

    /// Passes changed lanes to the scheduler, with the times when their next requests are due.
    ///
    /// - Parameter flushedAt: The time of the flush that has selected the lanes; `nil` if none has.
    func announce(_ lanes: [LaneRecord], flushedAt: Moment? = nil) {
        for lane in lanes where lane.isPaused { resolvePaused(lane.id) }
        guard phase == .running else { return }
        let busy = lanes.filter { $0.due != nil || flushedAt != nil }
        if !busy.isEmpty { handle(.lanes(rows(of: busy, flushedAt: flushedAt))) }
        let emptied = lanes.filter(\.wasEmpty)
        if !emptied.isEmpty { handle(.emptied(lanes: emptied.map(\.id))) }
    }

    private func rows(of lanes: [LaneRecord], flushedAt: Moment? = nil) -> [Scheduler.LaneRows] {
        lanes.map { lane in
            Scheduler.LaneRows(
                Scheduler.LaneInfo(lane, now: now),
                due: lane.due.map { now + $0 },
                isRequested: lane.wasReleased,
                flushedAt: flushedAt
            )
        }
    }

    /// Passes all lanes that have requests to the scheduler. The first ones are passed before this returns, and the others
    /// in the background.
    func announceAllBusy() async throws -> Task<Void, Never>? {
        guard let next = try await announceBusy(after: 0) else { return nil }
        return Task { await self.announceOthers(after: next) }
    }

    /// Flushes lanes that have requests: first those in memory, and then the others.
    func flushBusy(in selection: LaneSelection) async throws {
        var page = try await busyLanes(in: selection, after: 0)
        let start = now
        handle(.flush(selection))
        while phase == .running {
            announce(page.lanes, flushedAt: start)
            guard let next = page.next else { return }
            page = try await busyLanes(in: selection, after: next)
        }
    }

    private func announceBusy(after last: Int64) async throws -> Int64? {
        let page = try await busyLanes(in: .all, after: last)
        announce(page.lanes)
        return page.next
    }

    /// Returns some lanes that have requests.
    ///
    /// - Parameter last: The lane after which to begin; 0 for the first one.
    /// - Returns: The lanes, and the last of them; `nil` if there are no more.
    private func busyLanes(in selection: LaneSelection, after last: Int64) async throws
        -> (lanes: [LaneRecord], next: Int64?)
    {
        let lanes = try await store.busyLanes(in: selection, after: last, limit: Self.lanesAtOnce)
        return (lanes, lanes.count < Self.lanesAtOnce ? nil : lanes.last?.id)
    }

    private func announceOthers(after first: Int64) async {
        var next: Int64? = first
        while let last = next, phase == .running, !hasFailed {
            do {
                next = try await announceBusy(after: last)
            } catch {
                await pause(after: error)
            }
        }
    }

    /// Reads lanes that the scheduler has ordered. The next ones are read together, after those that are being read.
    func load(_ lanes: [Int64]) {
        lanesToLoad += lanes
        if loading == nil { loading = Task { await self.loadLanes() } }
    }

    private func loadLanes() async {
        while !lanesToLoad.isEmpty, phase == .running, !hasFailed {
            let ids = Array(lanesToLoad.prefix(Self.lanesAtOnce))
            do {
                let lanes = try await store.lanes(ids)
                // `stop()` may have been called meanwhile.
                guard phase == .running else { break }
                lanesToLoad.removeFirst(ids.count)
                let missing = Set(ids).subtracting(lanes.map(\.id))
                handle(.loaded(rows(of: lanes), missing: missing.sorted()))
            } catch {
                await pause(after: error)
            }
        }
        loading = nil
    }

    /// Waits before a read is repeated, unless the error has ended the store.
    private func pause(after error: any Error) async {
        failed(error)
        guard !hasFailed else { return }
        try? await Task.sleep(for: .seconds(1), clock: .continuous)
    }
}

extension Scheduler.LaneInfo {
    fileprivate init(_ lane: LaneRecord, now: Moment) {
        self.init(id: lane.id, key: lane.key, notBefore: lane.notBefore.map { now + $0 })
    }
}

extension OfflineQueue {
    /// Checks the whole queue without changing it or delaying writers.
    ///
    /// It checks the structure of the database, the stored counts of requests and bytes, each unfinished or dead
    /// request, and the complete content of its body. Encrypted requests are decrypted. Without their key, only the
    /// existence and the size of their bodies are checked.
    ///
    /// A body of up to 64 KiB is stored in the database. If it is not encrypted, it is checked by its SHA-256, or only
    /// by its length if an earlier version stored it without a SHA-256. The SHA-256 reveals faults of the disk, but not
    /// deliberate changes: a person who can write to the database can also replace the SHA-256.
    ///
    /// The result replaces the findings of ``scan``.
    ///
    /// - Throws: ``QueueError`` of the store. `CancellationError` if the task is cancelled or the queue stops.
    public nonisolated func verify() async throws -> QueueVerification {
        let report = try await store.archive.inspect()
        scanner.replaceFindings(with: report)
        return report
    }

    /// Checks the structure of the database for a limited time, without its rows and the bodies in the spool. Delays no
    /// writer.
    ///
    /// - Parameter limit: The time after which the check ends.
    /// - Throws: ``QueueError`` of the store. `CancellationError` if the queue stops.
    package nonisolated func quickCheck(within limit: Duration) async throws -> QuickCheck {
        try await store.archive.quickCheck(within: limit)
    }

    /// What the scans of the store have found, also those before the last restart; see ``Configuration/scanInterval``.
    public nonisolated var scan: QueueScan { scanner.scan }

    /// Checks the database's log before a queue is opened, because opening the queue would drop damaged commits.
    ///
    /// Does nothing if a process has the queue open.
    ///
    /// - Parameter path: The queue's directory.
    /// - Throws: ``QueueError``: `directoryUnusable`, `storeUnusable` if the log is damaged, `storeUnavailable`.
    package static func checkLeftoverLog(directory path: String) async throws {
        try await DispatchQueue.global().run {
            let directory: QueueDirectory
            do throws(QueueError) { directory = try QueueDirectory(path: path) } catch {
                if error.code == .alreadyOwned { return }
                throw error
            }
            defer { directory.release() }
            // Damage is recorded. Opening the queue reports it.
            if directory.isDatabaseLost { return }
            do throws(StoreFault) {
                if let damage = try QueueDatabase.leftoverLog(of: directory.databasePath)?.damage {
                    throw .damaged(damage)
                }
            } catch {
                throw error.error(path: directory.databasePath)
            }
        }
    }
}

/// A request of this queue whose response a caller of this process waits for. Its attempts keep more of the response
/// than the store does.
struct AwaitedResponse {
    /// How the request ended, if an attempt of this process ended it.
    struct Conclusion: Sendable {
        let verdict: Verdict
        let response: RecordedResponse?
    }

    /// The maximum number of body bytes that the caller accepts.
    let limit: Int
    var conclusion: Conclusion?
}

extension OfflineQueue {
    /// Whether the queue still writes, so that stored requests can finish in this process.
    var isOpen: Bool { phase != .stopped && !hasFailed }

    /// Keeps the response to a request for ``takeResponse(to:)``. Must be called before the request is enqueued.
    func expectResponse(to id: String, upTo limit: Int) {
        awaitedResponses[id] = AwaitedResponse(limit: limit)
    }

    /// Returns how the request ended, if an attempt of this process ended it, and forgets the request.
    func takeResponse(to id: String) -> AwaitedResponse.Conclusion? {
        awaitedResponses.removeValue(forKey: id)?.conclusion
    }

    /// Drops a kept response whose outcome could not be stored.
    func dropResponse(to id: String) {
        awaitedResponses[id]?.conclusion = nil
    }

    func keepResponse(to id: String, _ verdict: Verdict, _ outcome: AttemptOutcome?) {
        guard let limit = awaitedResponses[id]?.limit else { return }
        switch verdict {
        case .delivered, .dead:
            awaitedResponses[id]?.conclusion = AwaitedResponse.Conclusion(
                verdict: verdict,
                response: outcome?.response(upTo: limit)
            )
        case .retry, .held: break
        }
    }
}

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

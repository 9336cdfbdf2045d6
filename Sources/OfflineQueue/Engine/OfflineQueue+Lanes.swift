internal import NetwatchEventLoop

/// Lanes: the scheduler is notified of their changes, and reads them from the store.
extension OfflineQueue {
    /// The number of lanes that are read at once. A read of so many takes a few milliseconds.
    private static let lanesAtOnce = 500

    /// Passes changed lanes to the scheduler, with the times when their next requests are due.
    ///
    /// - Parameter isFlushed: Whether a flush has selected the lanes.
    func announce(_ lanes: [LaneRecord], isFlushed: Bool = false) {
        for lane in lanes where lane.isPaused { resolvePaused(lane.id) }
        guard phase == .running else { return }
        let busy = lanes.filter { $0.due != nil }
        if !busy.isEmpty { handle(.lanes(rows(of: busy, isFlushed: isFlushed))) }
        let emptied = lanes.filter(\.wasEmpty)
        if !emptied.isEmpty { handle(.emptied(lanes: emptied.map(\.id))) }
        let idle = emptied.filter { $0.due == nil && !$0.isPaused }
        if !idle.isEmpty { handle(.idle(lanes: idle.map(\.id))) }
    }

    private func rows(of lanes: [LaneRecord], isFlushed: Bool = false) -> [Scheduler.LaneRows] {
        lanes.map { lane in
            Scheduler.LaneRows(
                Scheduler.LaneInfo(lane, now: now),
                due: lane.due.map { now + $0 },
                isRequested: lane.wasReleased,
                isFlushed: isFlushed
            )
        }
    }

    /// Passes some of the lanes that have requests to the scheduler.
    ///
    /// - Parameter last: The lane after which to begin; 0 for the first one.
    /// - Returns: The last of these lanes; `nil` if there are no more.
    func announceBusy(in selection: LaneSelection, after last: Int64, isFlushed: Bool = false) async throws
        -> Int64?
    {
        let lanes = try await store.busyLanes(in: selection, after: last, limit: Self.lanesAtOnce)
        announce(lanes, isFlushed: isFlushed)
        return lanes.count < Self.lanesAtOnce ? nil : lanes.last?.id
    }

    /// Passes the other lanes that have requests to the scheduler, after the queue has started.
    func announceAllBusy(after first: Int64) async {
        var next: Int64? = first
        while let last = next, phase == .running, !hasFailed {
            do {
                next = try await announceBusy(in: .all, after: last)
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

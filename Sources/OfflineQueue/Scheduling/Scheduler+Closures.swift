// Reports which lanes are closed after failures.

extension Scheduler {
    /// The period for which a lane is closed after failures.
    package struct Closure: Hashable, Sendable {
        package let lane: Int64
        package let key: LaneKey
        package let until: Moment
        /// Whether a shortage of this machine's resources caused the closure.
        package let isLocal: Bool
    }

    /// Returns the current closure of a lane; `nil` if failures have not closed it, or it is not in memory.
    package func closure(ofLane id: Int64, now: Moment) -> Closure? {
        lanes[id].flatMap { Closure($0, now: now) }
    }

    /// Returns the current closures of the lanes in memory, sorted by host and label.
    package func closures(now: Moment) -> [Closure] {
        lanes.values.compactMap { Closure($0, now: now) }
            .sorted {
                ($0.key.origin.host, $0.key.label, $0.until) < ($1.key.origin.host, $1.key.label, $1.until)
            }
    }

    /// Resets the failures of a lane whose last request was delivered, given up or removed.
    ///
    /// A closed lane is opened but not removed, because another request may have been enqueued in the meantime. If the
    /// lane's next claim finds no request, the lane is removed.
    mutating func emptied(_ id: Int64, now: Moment) {
        if var lane = unloaded[id] {
            lane.emptied(now: now)
            unloaded.set(id, lane)
        }
        guard let lane = lanes[id], lane.isHeld || lane.failuresEnd > now else { return }
        lanes[id]!.recover()
        lanes[id]!.distrustedUntil = nil
        lanes[id]!.isHeld = false
        lanes[id]!.refusals = RefusalCheck(since: now)
        lanes[id]!.rowsAreDue(at: now)
        schedule(id, now: now)
    }
}

extension Scheduler.Closure {
    fileprivate init?(_ lane: SchedulerLane, now: Moment) {
        guard lane.failuresEnd > now else { return nil }
        self.init(
            lane: lane.id,
            key: lane.key,
            until: lane.failuresEnd,
            isLocal: lane.shortages > 0
        )
    }
}

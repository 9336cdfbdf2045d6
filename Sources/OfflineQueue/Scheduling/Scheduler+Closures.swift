// Reports of lanes that are closed after failures.

extension Scheduler {
    /// A closure of a lane after failures.
    package struct Closure: Hashable, Sendable {
        package let lane: Int64
        package let host: String
        package let label: String
        package let until: Moment
        /// Whether a shortage on this machine caused the closure, rather than the server.
        package let isLocal: Bool
    }

    /// Returns the closure of a lane; `nil` if the lane is not closed after failures.
    package func closure(ofLane id: Int64, now: Moment) -> Closure? {
        lanes[id].flatMap { Closure($0, now: now) }
    }

    /// Returns all closures, sorted by host and label.
    package func closures(now: Moment) -> [Closure] {
        lanes.values.compactMap { Closure($0, now: now) }
            .sorted { ($0.host, $0.label, $0.until) < ($1.host, $1.label, $1.until) }
    }

    /// Forgets the failures of a lane whose last request is gone, whether it was delivered, given up or cancelled.
    ///
    /// A closed lane is opened rather than removed, so that a request enqueued meanwhile is not missed. The lane is
    /// removed when its next claim finds no request.
    mutating func emptied(_ id: Int64, now: Moment) {
        guard let lane = lanes[id], lane.isHeld || lane.failuresEnd > now else { return }
        lanes[id]!.recover()
        lanes[id]!.distrustedUntil = nil
        lanes[id]!.isHeld = false
        lanes[id]!.rowsAreDue(at: now)
        schedule(id, now: now)
    }
}

extension Scheduler.Closure {
    fileprivate init?(_ lane: SchedulerLane, now: Moment) {
        guard lane.failuresEnd > now else { return nil }
        self.init(
            lane: lane.id,
            host: lane.host,
            label: lane.label,
            until: lane.failuresEnd,
            isLocal: lane.shortages > 0
        )
    }
}

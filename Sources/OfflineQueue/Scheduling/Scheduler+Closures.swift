// Lanes that failures keep closed, for people.

extension Scheduler {
    /// A lane that is closed after failures.
    package struct Closure: Hashable, Sendable {
        package let lane: Int64
        package let host: String
        package let label: String
        package let until: Moment
        /// Whether this machine was short of something, and not the server to blame.
        package let isLocal: Bool
    }

    /// `nil` when failures do not keep the lane closed.
    package func closure(ofLane id: Int64, now: Moment) -> Closure? {
        lanes[id].flatMap { Closure($0, now: now) }
    }

    /// All of them, by host and label.
    package func closures(now: Moment) -> [Closure] {
        lanes.values.compactMap { Closure($0, now: now) }
            .sorted { ($0.host, $0.label, $0.until) < ($1.host, $1.label, $1.until) }
    }

    /// Whether the lane has nothing that is due yet: in a lane that keeps order its first request is not.
    package func isDueLater(lane id: Int64, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        return lane.due.map { $0 > now } ?? true
    }

    /// The lane has no request left, so its failures are forgotten, as they are when the last one is given up.
    ///
    /// A lane that is closed opens instead of going at once: a request that came meanwhile must not be lost. A claim that
    /// finds none ends it.
    mutating func emptied(_ id: Int64, now: Moment) {
        guard let lane = lanes[id], lane.isHeld || lane.failuresEnd > now else { return }
        lanes[id]!.recover()
        lanes[id]!.distrustedUntil = nil
        lanes[id]!.isHeld = false
        lanes[id]!.rowsAreDue(at: now)
        place(id, now: now)
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

/// The properties that identify a lane. A lane is a group of requests that share their order and their backoff.
package struct LaneKey: Hashable, Sendable {
    package enum Mode: String, Hashable, Sendable {
        case parallel
        case fifo
    }

    package let origin: Origin
    /// The label; empty for the origin's common lane.
    package let label: String
    package let mode: Mode
    package let constraints: RequestConstraints

    package init(
        origin: Origin,
        label: String = "",
        mode: Mode = .parallel,
        constraints: RequestConstraints = RequestConstraints()
    ) {
        self.origin = origin
        self.label = label
        self.mode = mode
        self.constraints = constraints
    }
}

extension QueueStatistics.ClosedLane {
    init(id: Int64, _ key: LaneKey, closure: LaneClosure) {
        self.init(
            id: id,
            host: key.origin.host,
            label: key.label,
            origin: key.origin.description,
            isFIFO: key.mode == .fifo,
            constraints: key.constraints,
            closure: closure
        )
    }
}

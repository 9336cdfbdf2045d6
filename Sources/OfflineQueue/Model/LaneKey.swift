/// The properties that identify a lane. A lane is a group of requests that share their order and their backoff.
package struct LaneKey: Hashable, Sendable {
    package enum Mode: String, Hashable, Sendable {
        case parallel
        case fifo
    }

    /// The beginning of the labels that only this process itself uses. Requests with a submitter are refused in such
    /// lanes.
    static let reservedPrefix = "netwatch-"

    package let origin: Origin
    /// The label; empty for the origin's common lane.
    package let label: String
    package let mode: Mode
    package let constraints: RequestConstraints
    /// The user who has submitted the requests of the lane; `nil` for requests without a submitter. No lane has
    /// requests of two users, so that no user can delay the requests of another one.
    package var submitter: UInt32?

    package init(
        origin: Origin,
        label: String = "",
        mode: Mode = .parallel,
        constraints: RequestConstraints = RequestConstraints(),
        submitter: UInt32? = nil
    ) {
        self.origin = origin
        self.label = label
        self.mode = mode
        self.constraints = constraints
        self.submitter = submitter
    }
}

extension QueueStatistics.ClosedLane {
    init(id: Int64, _ key: LaneKey, closure: LaneClosure) {
        self.init(
            id: id,
            host: key.origin.host,
            label: key.label,
            submitter: key.submitter,
            origin: key.origin.description,
            isFIFO: key.mode == .fifo,
            constraints: key.constraints,
            closure: closure
        )
    }
}

/// The key of a lane: a group of requests that share order and backoff.
package struct LaneKey: Hashable, Sendable {
    package enum Mode: String, Hashable, Sendable {
        case parallel
        case fifo
    }

    package let origin: Origin
    /// The label; empty for the origin's common lane.
    package let label: String
    package let mode: Mode

    package init(origin: Origin, label: String = "", mode: Mode = .parallel) {
        self.origin = origin
        self.label = label
        self.mode = mode
    }
}

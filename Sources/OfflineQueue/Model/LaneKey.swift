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

/// A selection of lanes by their host, their label and their submitter.
package struct LaneSelection: Hashable, Sendable, Codable {
    /// Selects every lane.
    package static let all = LaneSelection()

    /// The host of the lane's URLs in lower case; `nil` matches every host.
    package let host: String?
    /// The lane's label; empty matches lanes without a label, `nil` matches every lane.
    package let label: String?
    /// The user whose lanes are selected; `nil` matches the lanes of all users, and those without a submitter.
    package let submitter: UInt32?

    private enum CodingKeys: String, CodingKey {
        case host, submitter
        case label = "lane"
    }

    package init(host: String? = nil, label: String? = nil, submitter: UInt32? = nil) {
        self.host = host?.lowercased()
        self.label = label
        self.submitter = submitter
    }

    /// Returns whether lanes of the host may be selected.
    func includes(host: String) -> Bool { self.host.map { $0 == host } ?? true }

    /// Returns whether a lane is selected.
    func includes(_ key: LaneKey) -> Bool {
        includes(host: key.origin.host) && (label.map { $0 == key.label } ?? true)
            && (submitter.map { $0 == key.submitter } ?? true)
    }

    /// The error of a call that applies to the selection, if the queue has no such lane.
    var unknown: QueueError { QueueError(.unknownLane, "the queue has no lane \(words)") }

    private var words: String {
        let label = label.map { $0.isEmpty ? "without a label" : "with the label \(quoted($0))" }
        return [host.map { "to the host \(quoted($0))" }, label, submitter.map { "of the user \($0)" }]
            .compactMap(\.self).joined(separator: " ")
    }
}

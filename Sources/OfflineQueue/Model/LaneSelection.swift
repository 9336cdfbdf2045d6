/// A selection of lanes by their host, their label and their submitter.
package struct LaneSelection: Hashable, Sendable {
    /// Selects every lane.
    package static let all = LaneSelection()

    /// The host of the lane's URLs in lower case; `nil` matches every host.
    package let host: String?
    /// The lane's label; empty matches lanes without a label, `nil` matches every lane.
    package let label: String?
    /// The user whose lanes are selected; `nil` matches the lanes of all users, and those without a submitter.
    package let submitter: UInt32?

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

/// An upload that no request uses yet.
public struct StagedBody: Hashable, Sendable {
    /// The id of the upload, chosen by the caller.
    public let id: String
    /// The number of bytes uploaded so far.
    public let bytes: Int64
    /// The time since the last piece was received.
    public let idle: Duration
    /// The id of the user who uploads the body; `nil` if the process itself does.
    package let submitter: UInt32?

    package init(id: String, bytes: Int64, idle: Duration, submitter: UInt32? = nil) {
        self.id = id
        self.bytes = bytes
        self.idle = idle
        self.submitter = submitter
    }
}

/// The purpose of an upload, which determines its maximum size.
public enum StagedBodyPurpose: String, Hashable, Sendable, CaseIterable {
    /// The body of a request. The maximum size is ``QueueRequest/maximumBodyBytes``.
    case request
    /// An export to import. Only ``QueueLimits/bytes`` limits its size.
    case `import`
}

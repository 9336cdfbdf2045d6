/// An upload that no request uses yet.
public struct StagedBody: Hashable, Sendable {
    /// The name chosen by the caller.
    public let id: String
    /// The number of bytes uploaded so far.
    public let bytes: Int64
    /// The time since the last piece was received.
    public let idle: Duration

    package init(id: String, bytes: Int64, idle: Duration) {
        self.id = id
        self.bytes = bytes
        self.idle = idle
    }
}

/// The purpose of a body that is uploaded in pieces.
public enum StagedBodyPurpose: String, Hashable, Sendable, CaseIterable {
    /// The body of a request: at most ``QueueRequest/maximumBodyBytes``.
    case request
    /// An export to be imported: limited only by ``QueueLimits/bytes``.
    case `import`
}

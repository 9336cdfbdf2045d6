/// The size limits of a queue.
public struct QueueLimits: Hashable, Sendable {
    /// The maximum number of unfinished requests. At least 1. Default 1,000,000.
    public var requests = 1_000_000
    /// The maximum number of bytes of unfinished requests: URLs, headers and bodies, and uploads that no request uses
    /// yet. At least 1. Default 4 GiB, so that a lane has room for several bodies of the maximum size.
    public var bytes: Int64 = 4 << 30
    /// The share of both limits that one lane may use: more than 0, at most 1. Default 0.5.
    public var laneShare = 0.5
    /// The bytes of the file system that new requests leave free, so that outcomes can be written. At least 0. Default
    /// 64 MiB. On a smaller file system the reserve is a tenth of it, but at least the 8 MiB that the database's log
    /// may use.
    public var diskReserve: Int64 = 64 << 20

    /// Creates the default limits.
    public init() {}
}

/// What a full queue does with a new request; see ``QueueLimits``.
public enum FullQueuePolicy: String, Hashable, Sendable, CaseIterable {
    /// Refuses the request with ``QueueError/Code/queueFull``.
    case reject
    /// Gives up the oldest waiting requests that are not in flight until there is room.
    case dropOldest = "drop-oldest"
    /// Drops the new request; the receipt reports it.
    case dropNewest = "drop-newest"
    /// Makes the call wait for room, also for the room of uploads that no request uses yet. Cancelling its task ends
    /// the wait.
    case block
}

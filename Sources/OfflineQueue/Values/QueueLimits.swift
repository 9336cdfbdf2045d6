/// The size limits of a queue.
public struct QueueLimits: Hashable, Sendable {
    /// The maximum number of unfinished requests, at least 1. Default 1,000,000.
    public var requests = 1_000_000
    /// The maximum size of all unfinished requests in bytes, at least 1. Default 4 GiB, so that a lane has room for
    /// several bodies of the maximum size (512 MiB).
    ///
    /// The size includes URLs, headers, bodies, and uploads that no request uses yet.
    public var bytes: Int64 = 4 << 30
    /// The share of ``requests`` and ``bytes`` that one lane may use: more than 0, at most 1. Default 0.5.
    public var laneShare = 0.5
    /// The number of bytes that new requests leave free on the file system, at least 0. Default 64 MiB.
    ///
    /// The queue needs this space to write the outcomes of requests. On a file system of less than ten times this
    /// size, the reserve is a tenth of the file system, but at least the 8 MiB that the database's log may use.
    public var diskReserve: Int64 = 64 << 20

    /// The beginning of the names of the limits in messages. Default: the names of this type in
    /// ``OfflineQueue/Configuration``.
    package var namePrefix = "limits."
    /// The name of ``diskReserve`` in messages, after ``namePrefix``.
    package var diskReserveName = "diskReserve"

    /// Creates the default limits.
    public init() {}
}

/// The action of a full queue when a request is enqueued. ``QueueLimits`` determines when a queue is full.
public enum FullQueuePolicy: String, Hashable, Sendable, CaseIterable {
    /// Refuses the request with ``QueueError/Code/queueFull``.
    case reject
    /// Gives up the oldest requests, except those in flight, until the new request fits.
    case dropOldest = "drop-oldest"
    /// Drops the new request. The outcome in its receipt is ``Receipt/Outcome/dropped``.
    case dropNewest = "drop-newest"
    /// Suspends the call until requests have finished or unused uploads were removed, so that the new request fits.
    /// Cancelling the caller's task ends the wait.
    case block
}

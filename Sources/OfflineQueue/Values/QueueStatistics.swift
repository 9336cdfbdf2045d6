public import Foundation

/// The number of requests in each state.
public struct QueueCounts: Hashable, Sendable {
    private var numbers: [QueuedRequest.State: Int] = [:]

    /// Creates counts of zero.
    public init() {}

    /// The number of requests in a state. For final states, the number of requests that are still in the history.
    public subscript(state: QueuedRequest.State) -> Int {
        get { numbers[state, default: 0] }
        set { numbers[state] = newValue }
    }
}

/// Statistics of a queue.
public struct QueueStatistics: Hashable, Sendable {
    /// The number of requests in each state.
    public let counts: QueueCounts
    /// The number of unfinished requests, as counted for ``QueueLimits/requests``.
    public let requests: Int
    /// The bytes of unfinished requests, as counted for ``QueueLimits/bytes``.
    public let bytes: Int64
    /// The time at which the oldest unfinished request was enqueued.
    public let oldest: Date?
    /// The number of lanes with unfinished requests.
    public let lanes: Int
    /// Whether the whole queue is paused.
    public let isPaused: Bool
    /// The paused lanes by host and label, whether or not the whole queue is paused; at most ``maximumPausedLanes``.
    public let pausedLanes: [PausedLane]
    /// The closed lanes with requests: first those closed by a server's `Retry-After`, by host and label, then others;
    /// at most ``maximumPausedLanes`` of each. No lane is listed twice.
    public internal(set) var closedLanes: [ClosedLane]
    /// The size of the database's files in bytes.
    public let databaseBytes: Int64
    /// The free bytes of the queue's file system.
    public let freeBytes: Int64
    /// The number of uploads that no request uses yet; see ``OfflineQueue/appendToBody(_:_:at:for:)``.
    public internal(set) var stagedBodies = 0
    /// The bytes of these uploads.
    public internal(set) var stagedBytes: Int64 = 0

    /// The maximum number of paused lanes and of closed lanes in the statistics: 1000.
    public static let maximumPausedLanes = 1000

    /// A paused lane, in the form that ``OfflineQueue/resume(host:lane:)`` accepts. It may stand for several origins of
    /// the host.
    public struct PausedLane: Hashable, Sendable {
        /// The host of the lane's URLs.
        public let host: String
        /// The lane's label; empty for a lane without one.
        public let label: String
    }

    /// A lane that is closed for a time.
    public struct ClosedLane: Hashable, Sendable {
        /// Distinguishes lanes of the same host and label.
        let id: Int64
        /// The host of the lane's URLs.
        public let host: String
        /// The lane's label; empty for a lane without one.
        public let label: String
        /// The closure: its end and its cause.
        public let closure: LaneClosure
    }
}

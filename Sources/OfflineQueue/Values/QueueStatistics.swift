public import Foundation

/// The number of requests in each state.
public struct QueueCounts: Hashable, Sendable {
    private var numbers: [QueuedRequest.State: Int] = [:]

    /// Creates counts that are all zero.
    public init() {}

    /// The number of requests in a state. For a final state, only requests that are still in the history are counted.
    public subscript(state: QueuedRequest.State) -> Int {
        get { numbers[state, default: 0] }
        // Zeros are not kept, so that equal counts compare as equal.
        set { numbers[state] = newValue == 0 ? nil : newValue }
    }
}

extension QueueCounts {
    /// The numbers of all states by their names.
    package var byName: [String: Int] {
        Dictionary(uniqueKeysWithValues: QueuedRequest.State.allCases.map { ($0.rawValue, self[$0]) })
    }
}

/// An object with the number of requests in each state.
extension QueueCounts: Codable {
    /// Decodes the counts. States that are not known are ignored.
    ///
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
        for (name, number) in try [String: Int](from: decoder) {
            if let state = QueuedRequest.State(rawValue: name) { self[state] = number }
        }
    }

    /// Encodes the counts of all states.
    public func encode(to encoder: any Encoder) throws { try byName.encode(to: encoder) }
}

/// Statistics of a queue.
public struct QueueStatistics: Hashable, Sendable, Codable {
    /// The number of requests in each state.
    public let counts: QueueCounts
    /// The number of unfinished requests, which ``QueueLimits/requests`` limits.
    public let requests: Int
    /// The size of the unfinished requests in bytes. ``QueueLimits/bytes`` limits the sum of this and ``stagedBytes``.
    public let bytes: Int64
    /// The time at which the oldest unfinished request was enqueued; `nil` if there is none.
    public let oldest: Date?
    /// The number of lanes with unfinished requests.
    public let lanes: Int
    /// Whether the whole queue is paused.
    public let isPaused: Bool
    /// The lanes that were paused individually, sorted by host and label; at most ``maximumPausedLanes``.
    public package(set) var pausedLanes: [PausedLane]
    /// The closed lanes that have requests: first those closed by a server's `Retry-After`, then the others.
    ///
    /// Each of the two groups is sorted by host and label, and has at most ``maximumPausedLanes`` lanes. No lane is
    /// listed twice. A lane that failures have closed is not listed while it is not in memory; see
    /// <doc:BeingAGoodCitizen#Lanes-in-memory>.
    public package(set) var closedLanes: [ClosedLane]
    /// The numbers of finished requests with a tag that no handler has handled yet, sorted by their tags; at most
    /// ``maximumPausedLanes`` tags.
    public package(set) var completions: [WaitingCompletions]
    /// The size of the database's files in bytes.
    public let databaseBytes: Int64
    /// The number of free bytes in the queue's file system.
    public package(set) var freeBytes: Int64
    /// The number of bytes that new requests leave free: ``QueueLimits/diskReserve``, or less on a small file system.
    public package(set) var diskReserve: Int64
    /// Whether too little of the file system is free for a new request with a body of 64 KiB. The queue then refuses
    /// such requests, and soon all new ones.
    public package(set) var isDiskFull: Bool
    /// The number of stored requests for each encryption key, including finished requests. The first element counts the
    /// unencrypted requests. The others are sorted by the id of the key. The current key is listed even if no request
    /// uses it. If the queue accepts no requests because its key is missing, this key is listed, too. Empty if the
    /// queue was never encrypted.
    public let encryption: [KeyUse]
    /// The number of uploads that no request uses yet; see ``OfflineQueue/appendToBody(_:_:at:for:)``.
    public internal(set) var stagedBodies = 0
    /// The number of bytes in the uploads that no request uses yet.
    public internal(set) var stagedBytes: Int64 = 0

    private enum CodingKeys: String, CodingKey {
        case counts, requests, bytes, oldest, lanes, pausedLanes, closedLanes, completions, databaseBytes,
            freeBytes
        case diskReserve = "diskReserveBytes"
        case encryption, stagedBodies, stagedBytes
        case isPaused = "paused"
        case isDiskFull = "diskFull"
    }

    /// The finished requests with a tag that wait for the tag's handler; see
    /// ``OfflineQueue/onCompletion(tag:perform:)``.
    public struct WaitingCompletions: Hashable, Sendable, Codable {
        /// The tag.
        public let tag: String
        /// The number of requests.
        public let count: Int
        /// Whether this process has registered a handler for the tag.
        public internal(set) var hasHandler = false
        /// The error of the handler's last call, if it threw one. The completion is delivered again later.
        public internal(set) var lastError: String?

        private enum CodingKeys: String, CodingKey {
            case tag, hasHandler, lastError
            case count = "requests"
        }

        package init(tag: String, count: Int) {
            self.tag = tag
            self.count = count
        }
    }

    /// The maximum number of lanes listed in ``pausedLanes``, in each group of ``closedLanes``, and in the result of
    /// ``OfflineQueue/flush(host:lane:)``: 1000.
    public static let maximumPausedLanes = 1000

    /// The number of requests that are encrypted with one key.
    public struct KeyUse: Hashable, Sendable, Codable {
        /// The id of the key: 8 hexadecimal digits that are derived from it. `nil` for requests that are not encrypted.
        public let keyID: String?
        /// The number of requests.
        public let requests: Int
        /// Whether the queue has the key. `true` for requests that are not encrypted.
        public let isAvailable: Bool
        /// Whether new requests are encrypted with this key.
        public let isCurrent: Bool

        private enum CodingKeys: String, CodingKey {
            case keyID = "key"
            case requests
            case isAvailable = "available"
            case isCurrent = "current"
        }
    }

    /// The host and label of paused lanes, as ``OfflineQueue/resume(host:lane:)`` accepts them.
    ///
    /// One value may stand for several lanes, because a host may have several origins.
    public struct PausedLane: Hashable, Sendable, Codable {
        /// The host of the lane's URLs.
        public let host: String
        /// The lane's label; empty for a lane without one.
        public let label: String
        /// The user whose requests the lane has; `nil` for requests without a submitter.
        package let submitter: UInt32?

        private enum CodingKeys: String, CodingKey {
            case host, submitter
            case label = "lane"
        }
    }

    /// A lane that sends no requests until its closure ends.
    public struct ClosedLane: Hashable, Sendable {
        /// The lane's id, which distinguishes lanes with the same host and label.
        let id: Int64
        /// The host of the lane's URLs.
        public let host: String
        /// The lane's label; empty for a lane without one.
        public let label: String
        /// The user whose requests the lane has; `nil` for requests without a submitter.
        package let submitter: UInt32?
        /// The origin of the lane's URLs with its port, such as `https://api.example.com:443`.
        public let origin: String
        /// Whether the lane sends its requests in order, one at a time.
        public let isFIFO: Bool
        /// The constraints of the lane's requests.
        public let constraints: RequestConstraints
        /// The closure: its end and its cause.
        public let closure: LaneClosure
    }
}

/// The members of the control API. `reason` is the closure in words, and is not decoded.
extension QueueStatistics.ClosedLane: Codable {
    private enum CodingKeys: CodingKey {
        case host, lane, submitter, origin, fifo, constraints, closure, reason
    }

    /// Decodes a lane.
    ///
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            id: 0,
            host: try members.decode(String.self, forKey: .host),
            label: try members.decode(String.self, forKey: .lane),
            submitter: try members.decodeIfPresent(UInt32.self, forKey: .submitter),
            origin: try members.decode(String.self, forKey: .origin),
            isFIFO: try members.decode(Bool.self, forKey: .fifo),
            constraints: RequestConstraints(
                stored: try members.decodeIfPresent(String.self, forKey: .constraints)
            ),
            closure: try members.decode(LaneClosure.self, forKey: .closure)
        )
    }

    /// Encodes the lane.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(host, forKey: .host)
        try members.encode(label, forKey: .lane)
        try members.encodeIfPresent(submitter, forKey: .submitter)
        try members.encode(origin, forKey: .origin)
        try members.encode(isFIFO, forKey: .fifo)
        if !constraints.isEmpty { try members.encode("\(constraints)", forKey: .constraints) }
        try members.encode(closure, forKey: .closure)
        try members.encode("\(closure)", forKey: .reason)
    }
}

/// The closure of a lane: the time until which the lane sends no requests, and the reason.
public struct LaneClosure: Hashable, Sendable, Codable {
    /// The cause of a closure.
    public enum Cause: String, Hashable, Sendable, CaseIterable, Codable {
        /// The server sent a `Retry-After` header. The closure survives a restart.
        case retryAfter = "retry_after"
        /// Attempts failed. The closure ends early when the lane has no requests left, at a restart, when the
        /// network changes, and when the server responds again; see
        /// <doc:BeingAGoodCitizen#When-a-server-responds-again>.
        case failures
        /// This machine was short of descriptors, memory, threads or ports.
        case localShortage = "local_shortage"
    }

    /// The time at which the lane opens, by the wall clock. ``OfflineQueue/flush(host:lane:)`` opens the lane earlier.
    public let until: Date
    /// The status of the response with `Retry-After`: 429 or 503. `nil` for other causes.
    public let status: Int?
    /// The cause of the closure.
    public let cause: Cause
}

extension LaneClosure: CustomStringConvertible {
    /// The cause in words, without the time at which the lane opens.
    public var description: String {
        switch cause {
        case .retryAfter: "lane closed by Retry-After" + (status.map { " of HTTP \($0)" } ?? "")
        case .failures: "\(QueuedReason.laneClosed)"
        case .localShortage: "\(QueuedReason.localShortage)"
        }
    }
}

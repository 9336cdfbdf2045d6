public import Foundation

/// How a request is queued. What is left alone has a default that loses nothing.
public struct EnqueueOptions: Hashable, Sendable {
    /// The request's id. Default `nil`: a new UUIDv7. Enqueuing an id again, which a caller does who did
    /// not hear the answer, changes nothing. 1 to 255 bytes of printable ASCII.
    public var id: String?
    /// Names a lane of its own among those of the request's origin; requests of one lane share order and
    /// backoff. Default `nil`, the origin's common lane. At most 255 bytes.
    public var lane: String?
    /// Whether the lane keeps the order of its requests: one is in flight at a time and one that has to be
    /// tried again keeps the others waiting. A request that is given up for good is skipped. Default
    /// `false`. A lane in order and one without are two lanes, even when they have the same label.
    public var isFIFO: Bool
    /// Which requests of a lane go first: 0 before 9. Default 5. A lane in order takes no other.
    public var priority = EnqueueOptions.defaultPriority
    /// How long it is tried before it is given up. Default 7 days; 1 ms to 366 days. Measured by a clock that
    /// does not step while the machine runs; over a reboot by the wall clock, and only when the kernel says
    /// that it is synchronized.
    public var timeToLive: Duration = .seconds(7 * 86_400)
    /// When it is given up, if that comes before the end of ``timeToLive``. Default `nil`.
    public var deadline: Date?
    /// It is not tried before, by the wall clock. Default `nil`. At most 366 days ahead; a time that has
    /// passed is now.
    public var notBefore: Date?
    /// After so many attempts that count it is given up. Default `nil`: only ``timeToLive`` ends it. At least 1.
    public var maximumAttempts: Int?
    /// How long the parts of an attempt may take.
    public var timeouts = AttemptTimeouts()
    /// Takes the place of a request of the same lane that has the same key and is not being sent: that one
    /// becomes `superseded`. Default `nil`. 1 to 255 bytes of printable ASCII.
    public var replaceKey: String?
    /// The ids of requests that have to be delivered before. Default none; at most 64. If one of them is
    /// given up or dropped, this one is held.
    public var dependencies: [String] = []
    /// What counts as success. Default: any 2xx status.
    public var expectation = Expectation.success
    /// Whether it is rather not delivered than sent twice: whenever it may have been applied, it is held.
    /// Default `false`. Such a request gets no key unless you give it one with ``idempotencyKey``; a key that you
    /// give is sent, and does not make a second attempt safe.
    public var isAtMostOnce = false
    /// The key by which the server knows a repeated request. Default: a random UUID for methods that are
    /// not idempotent.
    public var idempotencyKey: IdempotencyKey = .automatic
    /// What the request has survived when ``OfflineQueue/enqueue(_:options:)`` returns. Default `.full`.
    public var durability = Durability.full
    /// What happens when the queue is full. Default `.reject`.
    public var whenFull = FullQueuePolicy.reject

    /// The priority in the middle: 5.
    public static let defaultPriority = 5

    /// Makes options; see the properties for the defaults.
    public init(lane: String? = nil, isFIFO: Bool = false, id: String? = nil) {
        self.lane = lane
        self.isFIFO = isFIFO
        self.id = id
    }
}

/// The key that tells a server that two requests are one
/// ([draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/)).
/// It is made when the request is enqueued and goes with every attempt unchanged.
public struct IdempotencyKey: Hashable, Sendable {
    /// Where the key comes from.
    public enum Source: Hashable, Sendable {
        /// A random UUID for methods that are not idempotent (RFC 9110 §9.2.2), none for others.
        case automatic
        /// None. A request that is not idempotent is then held once it may have been applied.
        case none
        /// This one: 1 to 255 bytes of printable ASCII, without `"` and `\` when quoted.
        case value(String)
    }

    /// Where the key comes from. Default `.automatic`.
    public var source: Source
    /// The name of the header field. Default `Idempotency-Key`.
    public var headerName = "Idempotency-Key"
    /// Whether it is sent as a string of RFC 8941, in quotes, as the draft asks. Default `false`: most servers
    /// take it bare.
    public var isQuoted = false

    /// Makes a key.
    public init(_ source: Source = .automatic) {
        self.source = source
    }

    /// A key made by the queue where one is needed.
    public static let automatic = IdempotencyKey(.automatic)
    /// No key.
    public static let none = IdempotencyKey(.none)

    /// A key of the caller's.
    public static func value(_ key: String) -> IdempotencyKey {
        IdempotencyKey(.value(key))
    }
}

/// What an accepted request survives.
public enum Durability: String, Hashable, Sendable, CaseIterable {
    /// A crash of the process and a loss of power: it was synced to the disk.
    case full
    /// A crash of the process. A loss of power may take the last requests with it. Faster where syncing is
    /// slow.
    case normal
}

/// What happens to a request that a full queue has no room for; see ``QueueLimits``.
public enum FullQueuePolicy: String, Hashable, Sendable, CaseIterable {
    /// It is refused with ``QueueError/Code/queueFull``.
    case reject
    /// The oldest requests that wait and are not being sent are given up until there is room.
    case dropOldest = "drop-oldest"
    /// It is given up itself; the receipt says so.
    case dropNewest = "drop-newest"
    /// The call waits for room, also for that of uploads that no request uses yet. Cancelling its task ends the
    /// waiting.
    case block
}

/// How much a queue takes.
public struct QueueLimits: Hashable, Sendable {
    /// Requests on their way. Default 1,000,000; at least 1.
    public var requests = 1_000_000
    /// Bytes of requests on their way: URLs, headers and bodies, uploads that no request uses yet included. Default
    /// 4 GiB, so that a lane has room for several bodies of the longest kind; at least 1.
    public var bytes: Int64 = 4 << 30
    /// The share of both that one lane may take. Default 0.5; more than 0, at most 1.
    public var laneShare = 0.5
    /// Bytes of the file system that new requests leave free, so that outcomes can be written. Default 64 MiB; at least
    /// 0. On a smaller file system a tenth of it has to do, but not less than the 8 MiB that the log may take.
    public var diskReserve: Int64 = 64 << 20

    /// The defaults.
    public init() {}
}

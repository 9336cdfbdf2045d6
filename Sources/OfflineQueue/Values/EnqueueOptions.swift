public import Foundation

/// Options for enqueuing a request. The defaults never lose data.
public struct EnqueueOptions: Hashable, Sendable {
    /// The request's id: 1 to 255 bytes of printable ASCII. Default `nil`: a new UUIDv7. Enqueuing a known id changes
    /// nothing, so a caller that did not receive the receipt can enqueue the request again.
    public var id: String?
    /// The label of a separate lane of the request's origin. Requests of one lane share order and backoff. At most 255
    /// bytes. Default `nil`: the origin's common lane.
    public var lane: String?
    /// Whether the lane is FIFO: it sends one request at a time, and a request that waits for a retry keeps later ones
    /// waiting. A request that is given up is skipped. Default `false`. A FIFO lane and a parallel lane with the same
    /// label are two lanes.
    public var isFIFO: Bool
    /// The priority within the lane: 0 is sent first, 9 last. Default 5. A FIFO lane accepts no other value.
    public var priority = EnqueueOptions.defaultPriority
    /// How long the request is tried before it is given up: 1 ms to 366 days. Default 7 days. Measured by a clock that
    /// does not step while the machine runs. Across a reboot it is measured by the wall clock, but only if the kernel
    /// reports that clock as synchronized.
    public var timeToLive: Duration = .seconds(7 * 86_400)
    /// The time at which the request is given up, if earlier than the end of ``timeToLive``. Default `nil`.
    public var deadline: Date?
    /// The earliest time of an attempt, by the wall clock: at most 366 days ahead. A time in the past means now.
    /// Default `nil`.
    public var notBefore: Date?
    /// The number of counted attempts after which the request is given up. At least 1. Default `nil`: only
    /// ``timeToLive`` limits it.
    public var maximumAttempts: Int?
    /// The timeouts of an attempt.
    public var timeouts = AttemptTimeouts()
    /// The replace key: 1 to 255 bytes of printable ASCII. Enqueuing replaces the waiting request of the same lane that
    /// has the same key, but never one in flight. The replaced request becomes `superseded`. Default `nil`.
    public var replaceKey: String?
    /// The ids of requests that must be delivered first: at most 64. If one of them is given up or cancelled, this
    /// request is held. Default: none.
    public var dependencies: [String] = []
    /// The responses that count as success. Default: any 2xx status.
    public var expectation = Expectation.success
    /// Whether the request is never sent twice: it is held whenever the server may have applied it. Default `false`.
    /// Such a request has no idempotency key unless ``idempotencyKey`` gives one. A given key is sent, but does not
    /// make a second attempt safe.
    public var isAtMostOnce = false
    /// The key by which the server recognizes a repeated request. Default: a random UUID for methods that are not
    /// idempotent.
    public var idempotencyKey: IdempotencyKey = .automatic
    /// What the request survives once ``OfflineQueue/enqueue(_:options:)`` has returned. Default `.full`.
    public var durability = Durability.full
    /// What happens when the queue is full. Default `.reject`.
    public var whenFull = FullQueuePolicy.reject

    /// The default priority: 5.
    public static let defaultPriority = 5

    /// Creates options; see the properties for the defaults.
    public init(lane: String? = nil, isFIFO: Bool = false, id: String? = nil) {
        self.lane = lane
        self.isFIFO = isFIFO
        self.id = id
    }
}

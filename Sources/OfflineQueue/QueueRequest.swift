public import Foundation

/// An HTTP request as the queue keeps it.
public struct QueueRequest: Hashable, Sendable {
    /// One header line. Names keep the caller's spelling and are compared without case.
    public struct Header: Hashable, Sendable {
        /// The field name, a token of RFC 9110 §5.6.2.
        public var name: String
        /// The field value. CR, LF and NUL are refused.
        public var value: String

        /// Makes a header line.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The request method, a token of RFC 9110 §5.6.2. Sent as it is spelled.
    public var method: String
    /// An absolute `http` or `https` URL without user name and password.
    public var url: String
    /// The header lines. They are sent sorted by name, with lines of one name joined by commas.
    public var headers: [Header]
    /// The request content. At most ``maximumBodyBytes`` long.
    public var body: Data

    /// The longest body that is kept: 1 MiB.
    public static let maximumBodyBytes = 16 * 64 * 1024

    /// The longest URL, and the most that all header lines may have together: 64 KiB.
    public static let maximumHeadBytes = 64 * 1024

    /// Makes a request. Nothing is checked before it is enqueued.
    public init(method: String, url: String, headers: [Header] = [], body: Data = Data()) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }
}

/// How a request is queued.
public struct EnqueueOptions: Hashable, Sendable {
    /// Names a lane of its own among those of the request's origin; requests of one lane share order and
    /// backoff. Default `nil`, the origin's common lane. At most 255 bytes.
    public var lane: String?
    /// Whether the lane keeps the order of its requests: one is in flight at a time and one that has to be
    /// tried again keeps the others waiting. A request that is given up for good is skipped. Default
    /// `false`. A lane in order and one without are two lanes, even when they have the same label.
    public var isFIFO: Bool
    /// The `Idempotency-Key` sent with every attempt. Default `nil`: a method that is not idempotent
    /// (RFC 9110 §9.2.2) gets a random UUID, others none.
    public var idempotencyKey: String?
    /// The request's id. Default `nil`: a new UUIDv7. Enqueuing an id again, which a caller does who did
    /// not hear the answer, changes nothing. At most 255 bytes of printable ASCII.
    public var id: String?

    /// Makes options; see the properties for the defaults.
    public init(
        lane: String? = nil,
        isFIFO: Bool = false,
        idempotencyKey: String? = nil,
        id: String? = nil
    ) {
        self.lane = lane
        self.isFIFO = isFIFO
        self.idempotencyKey = idempotencyKey
        self.id = id
    }
}

public import Foundation

/// An HTTP request as the queue keeps it.
public struct QueueRequest: Hashable, Sendable {
    /// One header line. Names keep the caller's spelling and are compared without case.
    public struct Header: Hashable, Sendable {
        /// The field name, a token of RFC 9110 §5.6.2.
        public var name: String
        /// The field value. Control characters but the tab are refused.
        public var value: String

        /// Makes a header line.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The request content.
    public enum Body: Hashable, Sendable {
        /// Bytes in memory.
        case data(Data)
        /// A regular file. It is copied when the request is enqueued; what becomes of it later does not matter.
        case file(path: String)
        /// A body of `size` bytes that was handed over in pieces before; see
        /// ``OfflineQueue/appendToBody(_:_:at:for:)``.
        case staged(id: String, size: Int64)
    }

    /// The request method, a token of RFC 9110 §5.6.2. Sent as it is spelled. CONNECT and TRACE are refused.
    public var method: String
    /// An absolute `http` or `https` URL without user name and password, at most ``maximumURLBytes`` long.
    public var url: String
    /// The header lines. Those that carry secrets, or that concern one connection, are refused. They are sent sorted by name, with lines of one name joined by commas.
    public var headers: [Header]
    /// The request content. At most ``maximumBodyBytes`` long.
    public var body: Body

    /// The longest body that is kept: 512 MiB. ``QueueLimits`` may allow less.
    public static let maximumBodyBytes: Int64 = 512 << 20

    /// The longest URL: 16 KiB.
    public static let maximumURLBytes = 16 * 1024

    /// How many bytes the names and values of all header fields may have together: 64 KiB.
    public static let maximumHeadBytes = 64 * 1024

    /// Makes a request. Nothing is checked before it is enqueued.
    public init(method: String, url: String, headers: [Header] = [], body: Body) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Makes a request with a body in memory. Nothing is checked before it is enqueued.
    public init(method: String, url: String, headers: [Header] = [], body: Data = Data()) {
        self.init(method: method, url: url, headers: headers, body: .data(body))
    }
}

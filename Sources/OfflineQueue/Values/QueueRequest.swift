public import Foundation

/// An HTTP request to enqueue.
///
/// ```swift
/// let request = QueueRequest(
///     method: "POST",
///     url: "https://example.com/orders",
///     headers: [.init(name: "Content-Type", value: "application/json")],
///     body: Data(#"{"product":17}"#.utf8)
/// )
/// ```
public struct QueueRequest: Hashable, Sendable {
    /// A header line.
    public struct Header: Hashable, Sendable {
        /// The field name, a token of RFC 9110 §5.6.2. It is sent as spelled, and compared case-insensitively.
        public var name: String
        /// The field value. It must not contain control characters other than tab.
        public var value: String

        /// Creates a header line.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The body of a request.
    public enum Body: Hashable, Sendable {
        /// Bytes in memory.
        case data(Data)
        /// The content of a regular file. The queue copies the file when the request is enqueued, so later changes have
        /// no effect.
        case file(path: String)
        /// An upload of `size` bytes that was made with ``OfflineQueue/appendToBody(_:_:at:for:)``.
        case staged(id: String, size: Int64)
    }

    /// The request method, a token of RFC 9110 §5.6.2. It is sent as spelled. CONNECT and TRACE are refused.
    public var method: String
    /// The URL: absolute, `http` or `https`, at most ``maximumURLBytes`` long.
    ///
    /// The queue refuses a URL with a user name, a password or a query item that contains a secret, such as
    /// `access_token`. Use ``EnqueueOptions/credential`` instead.
    public var url: String
    /// The header lines. They are sent sorted by name, with lines of the same name joined by commas.
    ///
    /// The queue refuses lines that contain secrets, such as `Authorization`. Use ``EnqueueOptions/credential``
    /// instead. It also refuses lines that the client sets itself, such as `Host`, `Content-Length` and `Connection`.
    public var headers: [Header]
    /// The body, at most ``maximumBodyBytes`` long.
    public var body: Body

    /// The maximum size of a body: 512 MiB. The limits in ``QueueLimits`` may allow less.
    public static let maximumBodyBytes: Int64 = 512 << 20

    /// The maximum length of a URL: 16 KiB.
    public static let maximumURLBytes = 16 * 1024

    /// The maximum size of the names and values of all header fields together: 64 KiB.
    public static let maximumHeadBytes = 64 * 1024

    /// Creates a request. It is validated when it is enqueued.
    public init(method: String, url: String, headers: [Header] = [], body: Body) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Creates a request with a body in memory. It is validated when it is enqueued.
    public init(method: String, url: String, headers: [Header] = [], body: Data = Data()) {
        self.init(method: method, url: url, headers: headers, body: .data(body))
    }
}

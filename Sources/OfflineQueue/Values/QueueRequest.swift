public import Foundation

/// An HTTP request to be queued.
public struct QueueRequest: Hashable, Sendable {
    /// A header line. Names keep the caller's spelling and are compared case-insensitively.
    public struct Header: Hashable, Sendable {
        /// The field name, a token of RFC 9110 §5.6.2.
        public var name: String
        /// The field value. Control characters other than tab are refused.
        public var value: String

        /// Creates a header line.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The request content.
    public enum Body: Hashable, Sendable {
        /// Bytes in memory.
        case data(Data)
        /// A regular file. It is copied when the request is enqueued; later changes to the file have no effect.
        case file(path: String)
        /// A body of `size` bytes that was uploaded in pieces; see ``OfflineQueue/appendToBody(_:_:at:for:)``.
        case staged(id: String, size: Int64)
    }

    /// The request method, a token of RFC 9110 §5.6.2, sent as spelled. CONNECT and TRACE are refused.
    public var method: String
    /// An absolute `http` or `https` URL without user name and password, at most ``maximumURLBytes`` long.
    public var url: String
    /// The header lines. Lines with secrets and lines that concern a single connection are refused. They are sent
    /// sorted by name, with lines of the same name joined by commas.
    public var headers: [Header]
    /// The request content, at most ``maximumBodyBytes`` long.
    public var body: Body

    /// The maximum size of a body: 512 MiB. ``QueueLimits`` may allow less.
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

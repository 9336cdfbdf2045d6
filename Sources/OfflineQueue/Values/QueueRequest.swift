internal import ClientCore
public import Foundation
package import FoundationNetworking

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

// MARK: - JSON

/// The members of the control API: `url`, `method`, `headers` (an array of arrays of a name and a value), and one of
/// `body` (text), `body_base64` and `staged`. Only `url` is required. The method is GET if it is missing.
extension QueueRequest: Codable {
    package enum CodingKeys: String, CodingKey, CaseIterable {
        case url
        case method
        case headers
        case body
        case bodyBase64
        case staged
    }

    private struct StagedBody: Codable {
        let id: String
        let size: Int64
    }

    /// Decodes a request. Its values are not checked.
    ///
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            method: try container.decodeIfPresent(String.self, forKey: .method) ?? "GET",
            url: try container.decode(String.self, forKey: .url),
            headers: try container.decodeIfPresent([Header].self, forKey: .headers) ?? [],
            body: try Self.body(in: container)
        )
    }

    private static func body(in container: KeyedDecodingContainer<CodingKeys>) throws -> Body {
        let text = try container.decodeIfPresent(String.self, forKey: .body)
        let encoded = try container.decodeIfPresent(String.self, forKey: .bodyBase64)
        let staged = try container.decodeIfPresent(StagedBody.self, forKey: .staged)
        guard [text != nil, encoded != nil, staged != nil].count(where: \.self) <= 1 else {
            throw DecodingError.dataCorruptedError(
                forKey: .body,
                in: container,
                debugDescription: "`body`, `body_base64` and `staged` cannot be combined"
            )
        }
        if let staged { return .staged(id: staged.id, size: staged.size) }
        guard let encoded else { return .data(Data((text ?? "").utf8)) }
        guard let data = Data(base64Encoded: encoded) else {
            throw DecodingError.dataCorruptedError(
                forKey: .bodyBase64,
                in: container,
                debugDescription: "it is not valid Base64"
            )
        }
        return .data(data)
    }

    /// Encodes the request, with a body in memory as Base64.
    ///
    /// - Throws: `EncodingError` for a body in a file.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(url, forKey: .url)
        try container.encode(method, forKey: .method)
        if !headers.isEmpty { try container.encode(headers, forKey: .headers) }
        switch body {
        case .data(let data) where data.isEmpty: break
        case .data(let data): try container.encode(data.base64EncodedString(), forKey: .bodyBase64)
        case .staged(let id, let size): try container.encode(StagedBody(id: id, size: size), forKey: .staged)
        case .file(let path):
            let context = EncodingError.Context(
                codingPath: container.codingPath + [CodingKeys.body],
                debugDescription: "a body in a file has no form in JSON"
            )
            throw EncodingError.invalidValue(path, context)
        }
    }
}

/// An array of the name and the value.
extension QueueRequest.Header: Codable {
    /// Decodes a header line.
    ///
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
        let parts = try [String](from: decoder)
        guard parts.count == 2 else {
            let context = DecodingError.Context(
                codingPath: decoder.codingPath,
                debugDescription: "it must be an array of a name and a value"
            )
            throw DecodingError.dataCorrupted(context)
        }
        self.init(name: parts[0], value: parts[1])
    }

    /// Encodes the header line.
    public func encode(to encoder: any Encoder) throws { try [name, value].encode(to: encoder) }
}

/// An upload that no request uses yet.
public struct StagedBody: Hashable, Sendable {
    /// The id of the upload, chosen by the caller.
    public let id: String
    /// The number of bytes uploaded so far.
    public let bytes: Int64
    /// The time since the last piece was received.
    public let idle: Duration
    /// The id of the user who uploads the body; `nil` if the process itself does.
    package let submitter: UInt32?

    package init(id: String, bytes: Int64, idle: Duration, submitter: UInt32? = nil) {
        self.id = id
        self.bytes = bytes
        self.idle = idle
        self.submitter = submitter
    }
}

/// The purpose of an upload, which determines its maximum size.
public enum StagedBodyPurpose: String, Hashable, Sendable, CaseIterable {
    /// The body of a request. The maximum size is ``QueueRequest/maximumBodyBytes``.
    case request
    /// An export to import. Only ``QueueLimits/bytes`` limits its size.
    case `import`
}

extension URLRequest {
    /// Creates a request from its parts. Fields of the same name are joined with a comma.
    ///
    /// - Parameters:
    ///   - headers: The header lines.
    ///   - body: The body; `nil` for none.
    /// - Throws: ``QueueError`` with `invalidURL` if Foundation does not accept the URL.
    package init(
        method: String,
        url text: String,
        headers: [QueueRequest.Header],
        body: Data?
    ) throws(QueueError) {
        guard let url = URL(string: text) else {
            let shown = quoted(RedactedURL.text(ofUnchecked: text))
            throw QueueError(.invalidURL, "the URL \(shown) is not valid")
        }
        self.init(url: url)
        httpMethod = method
        httpBody = body
        for header in headers { addValue(header.value, forHTTPHeaderField: header.name) }
    }
}

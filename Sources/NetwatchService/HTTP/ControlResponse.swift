package import FoundationEssentials
package import NIOHTTP1

/// The rest of a response body that arrives in pieces, for as long as the client stays connected.
package struct ControlStream: Sendable {
    /// Waits for the next piece; `nil` at the end. The server requests a piece when the kernel has taken the previous
    /// one, so a slow client makes the server keep at most one piece for it.
    package let next: @Sendable () async -> [UInt8]?
    /// The bytes that the server sends if there is no piece for ``ControlServer/Limits/keepAliveInterval``. A write to
    /// a client that is gone fails, so that the connection is closed.
    package let keepAlive: [UInt8]

    package init(keepAlive: [UInt8], next: @escaping @Sendable () async -> [UInt8]?) {
        self.next = next
        self.keepAlive = keepAlive
    }
}

/// The response of a handler. The server adds `Content-Length`, and `Connection` if it closes the connection.
package struct ControlResponse: Sendable {
    package var status: HTTPResponseStatus
    package var headers: HTTPHeaders
    package var body: [UInt8]
    /// The pieces that follow the body; `nil` if the body is complete.
    package var stream: ControlStream?

    package init(status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Creates a response with the problem as `application/problem+json`.
    package init(_ problem: Problem) {
        self = .encoded(problem, status: problem.status, type: "application/problem+json")
        if let seconds = problem.retryAfter { headers.add(name: "retry-after", value: "\(seconds)") }
    }

    /// Returns a response with a value as `application/json`. If the value cannot be encoded, the response is a 500
    /// problem.
    package static func json(
        _ value: some Encodable,
        status: HTTPResponseStatus = .ok,
        encoder: JSONEncoder = Self.encoder
    ) -> ControlResponse {
        encoded(value, status: status, type: "application/json", encoder: encoder)
    }

    /// An encoder with sorted keys and unescaped slashes, so that responses are stable and readable.
    package static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    private static func encoded(
        _ value: some Encodable,
        status: HTTPResponseStatus,
        type: String,
        encoder: JSONEncoder = Self.encoder
    ) -> ControlResponse {
        guard let data = try? encoder.encode(value) else { return ControlResponse(.internalError) }
        return ControlResponse(status: status, headers: ["content-type": type], body: Array(data) + [newline])
    }

    /// The last byte of every body, so that the shell prompt after `curl` starts on a new line.
    private static let newline = UInt8(ascii: "\n")
}

/// An error of the control API: RFC 9457 problem details with a stable `code`.
package struct Problem: Error, Hashable, Sendable {
    /// The status of the response.
    package let status: HTTPResponseStatus
    /// The stable code for programs: `not_found`, `body_too_large`, …
    package let code: String
    /// The description of the error for people.
    package let detail: String
    /// The offset at which the next piece of the upload must start, for the code `wrong_offset`.
    package let offset: Int64?
    /// The limit that was reached, for the code `busy`.
    package let limit: ReachedLimit?
    /// The `Retry-After` of the response, in seconds; `nil` if repeating the same request cannot help.
    package let retryAfter: Int?

    package init(
        _ status: HTTPResponseStatus,
        code: String,
        detail: String,
        offset: Int64? = nil,
        limit: ReachedLimit? = nil,
        retryAfter: Int? = nil
    ) {
        self.retryAfter = retryAfter
        self.status = status
        self.code = code
        self.detail = detail
        self.offset = offset
        self.limit = limit
    }
}

/// A ``ConnectionClass`` that is full, and its limit.
package struct ReachedLimit: Hashable, Sendable {
    package let connectionClass: ConnectionClass
    /// The maximum number of requests of the class that are served at once.
    package let connections: Int
}

extension Problem: Encodable {
    private enum CodingKeys: String, CodingKey {
        case type, title, status, detail, code, offset
        case connectionClass = "class"
        case limit
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        // `about:blank` means that there is no further problem type; the title is then the reason phrase of the status.
        try container.encode("about:blank", forKey: .type)
        try container.encode(status.reasonPhrase, forKey: .title)
        try container.encode(status.code, forKey: .status)
        try container.encode(detail, forKey: .detail)
        try container.encode(code, forKey: .code)
        try container.encodeIfPresent(offset, forKey: .offset)
        try container.encodeIfPresent(limit?.connectionClass.rawValue, forKey: .connectionClass)
        try container.encodeIfPresent(limit?.connections, forKey: .limit)
    }
}

// MARK: - Errors of the server

extension Problem {
    static let malformed = Problem(
        .badRequest,
        code: "malformed_request",
        detail: "the bytes received are not an HTTP/1.1 request"
    )

    static let malformedTarget = Problem(
        .badRequest,
        code: "malformed_target",
        detail: "the request target is not a path with valid percent-encoding"
    )

    static let internalError = Problem(
        .internalServerError,
        code: "internal_error",
        detail: "the response could not be encoded"
    )

    /// The caller's access is not sufficient for a route.
    ///
    /// - Parameter detail: What the caller may not do, and how to get the access.
    static func forbidden(_ detail: String) -> Problem {
        Problem(.forbidden, code: "forbidden", detail: detail)
    }

    static func notFound(_ path: String) -> Problem {
        Problem(.notFound, code: "not_found", detail: "there is no resource `\(path)` here")
    }

    static func methodNotAllowed(_ method: HTTPMethod, _ path: String, allowed: String) -> Problem {
        Problem(
            .methodNotAllowed,
            code: "method_not_allowed",
            detail: "`\(path)` does not accept \(method.rawValue); accepted: \(allowed)"
        )
    }
}

package import NIOHTTP1

/// An error of the control API: RFC 9457 problem details with a stable `code`.
package struct Problem: Error, Hashable, Sendable {
    /// The status of the response.
    package let status: HTTPResponseStatus
    /// The stable code for programs: `not_found`, `body_too_large`, …
    package let code: String
    /// The description of the error for people.
    package let detail: String
    /// The offset at which the piece of a body should have started.
    package let offset: Int64?
    /// The limit that was reached, for the code `busy`.
    package let limit: ReachedLimit?
    /// The `Retry-After` of the response, in seconds, if the same request may succeed later.
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

/// The limit of a connection class.
package struct ReachedLimit: Hashable, Sendable {
    package let connectionClass: ConnectionClass
    /// The maximum number of connections of the class that are served at once.
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
        // `about:blank` means that there is no problem type beyond status and `code`; its title is the reason phrase.
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

    static func headersTooLarge(_ limits: ControlServer.Limits) -> Problem {
        Problem(
            .requestHeaderFieldsTooLarge,
            code: "headers_too_large",
            detail: "the request line and headers exceed \(limits.headerBytes) bytes in all, "
                + "\(limits.headerFieldBytes) bytes in one field, or \(limits.headerFields) fields"
        )
    }

    static func bodyTooLarge(_ limits: ControlServer.Limits) -> Problem {
        Problem(
            .payloadTooLarge,
            code: "body_too_large",
            detail: "the body exceeds \(limits.bodyBytes) bytes"
        )
    }

    static func tooSlow(_ part: String, _ deadline: Duration) -> Problem {
        Problem(
            .requestTimeout,
            code: "request_timeout",
            detail: "the \(part) did not arrive within \(deadline)"
        )
    }

    /// The request got no slot of its class. It had no effect.
    static func busy(_ connectionClass: ConnectionClass, _ limits: ControlServer.Limits) -> Problem {
        let limit = ReachedLimit(
            connectionClass: connectionClass,
            connections: limits.connections(of: connectionClass)
        )
        let bodies = limits.servedBytes(of: connectionClass).map { ", with \($0) bytes of bodies" } ?? ""
        return Problem(
            .serviceUnavailable,
            code: "busy",
            detail: "the service is busy: it serves at most \(limit.connections) requests of the class "
                + "`\(connectionClass.rawValue)` at once\(bodies); try again in \(busyPause) s",
            limit: limit,
            retryAfter: busyPause
        )
    }

    /// The `Retry-After` of a busy response, in seconds.
    private static let busyPause = 1

    /// No descriptor was left for the connection. The request was not read and had no effect.
    static let shortOfDescriptors = Problem(
        .serviceUnavailable,
        code: "short_of_descriptors",
        detail: "the service is short of descriptors (`RLIMIT_NOFILE`); try again in \(busyPause) s",
        retryAfter: busyPause
    )

    static func notFound(_ path: String) -> Problem {
        Problem(.notFound, code: "not_found", detail: "there is nothing at `\(path)`")
    }

    static func methodNotAllowed(_ method: HTTPMethod, _ path: String, allowed: String) -> Problem {
        Problem(
            .methodNotAllowed,
            code: "method_not_allowed",
            detail: "`\(path)` does not take \(method.rawValue); it takes \(allowed)"
        )
    }
}

internal import NIOHTTP1

/// The errors of a server that reached one of its limits.
extension Problem {
    static func headersTooLarge(_ limits: ControlServer.Limits) -> Problem {
        Problem(
            .requestHeaderFieldsTooLarge,
            code: "headers_too_large",
            detail: "the headers are too large; at most \(limits.headerBytes) bytes with the request line, "
                + "\(limits.headerFieldBytes) bytes in one field and \(limits.headerFields) fields are accepted"
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
            detail:
                "at most \(limit.connections) requests of the class `\(connectionClass.rawValue)` are served "
                + "at once\(bodies); try again in \(busyPause) s",
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
}

internal import NIOHTTP1
internal import OfflineQueue

/// The errors for requests that exceed a limit of the server.
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
            detail: "the body is too large; at most \(limits.bodyBytes) bytes are accepted"
        )
    }

    static func tooSlow(_ part: String, _ deadline: Duration) -> Problem {
        Problem(
            .requestTimeout,
            code: "request_timeout",
            detail: "the \(part) did not arrive within \(deadline)"
        )
    }

    /// The users of a scope have all slots of the request's class that they may have. The request had no effect.
    static func busy(
        _ connectionClass: ConnectionClass,
        _ scope: SharedLimit.Scope,
        _ limits: ControlServer.Limits
    ) -> Problem {
        let slots = SharedLimit(limits.connections(of: connectionClass)).value(for: scope)
        let bytes = limits.servedBytes(of: connectionClass).map { SharedLimit($0).value(for: scope) }
        let bodies = bytes.map { ", with bodies of at most \($0) bytes in total" } ?? ""
        return Problem(
            .serviceUnavailable,
            code: "busy",
            detail:
                "at most \(slots) requests of the class `\(connectionClass.rawValue)`\(scope.owner) are served at "
                + "once\(bodies); try again in \(busyPause) s",
            limit: ReachedLimit(connectionClass: connectionClass, connections: slots),
            retryAfter: busyPause
        )
    }

    /// The `Retry-After` of a busy response, in seconds.
    private static let busyPause = 1

    /// A user has more connections than it may have. The request was not read.
    static func tooManyConnections(_ caller: Caller, limit: Int) -> Problem {
        let user = caller.user.map { "the user \($0)" } ?? "this client"
        return Problem(
            .tooManyRequests,
            code: "too_many_connections",
            detail:
                "\(user) already has \(limit) connections, the limit of `access.quota.connections`; "
                + "close one, or try again in \(busyPause) s",
            retryAfter: busyPause
        )
    }

    /// No descriptor was left for the connection. The request was not read and had no effect.
    static let shortOfDescriptors = Problem(
        .serviceUnavailable,
        code: "short_of_descriptors",
        detail: "the service is short of descriptors (`RLIMIT_NOFILE`); try again in \(busyPause) s",
        retryAfter: busyPause
    )
}

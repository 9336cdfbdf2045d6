internal import Glibc
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import OfflineQueue

/// The connections that the server has refused before reading from them, because their user has no access or too many
/// connections. It only sends a response. So a user who connects in a loop costs a few system calls for each
/// connection, and neither a slot nor a turn of the thread that serves other users.
///
/// A refused connection stays open for a moment. If it was closed at once, a client that is still sending its request
/// would fail to write, and would not read the response. If there are too many, the oldest one is closed.
struct RefusedConnections: ~Copyable {
    /// Why a connection is refused.
    enum Reason: Hashable {
        case noAccess
        /// The user has this number of connections, the maximum.
        case tooManyConnections(Int)
    }

    /// What a response depends on.
    struct Refusal: Hashable {
        let caller: Caller
        let reason: Reason
    }

    private struct Entry {
        let descriptor: CInt
        let since: ContinuousClock.Instant
    }

    /// How long a connection stays open, at least.
    private static let lingerTime = Duration.seconds(1)
    /// The maximum number of responses that are kept for further connections of the same users.
    private static let mostResponses = 64

    /// The maximum number of open connections.
    private let limit: Int
    /// In the order of their refusal.
    private var entries: [Entry] = []
    /// The bytes of the last responses. To encode a response takes longer than to send it.
    private var responses: [Refusal: [UInt8]] = [:]

    init(limit: Int) {
        self.limit = limit
    }

    deinit {
        for entry in entries { close(entry.descriptor) }
    }

    /// Returns the response to an earlier connection that was refused for the same reason; `nil` if it is not known.
    func response(to refusal: Refusal) -> [UInt8]? { responses[refusal] }

    /// Responds to a connection, and takes ownership of it.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor of the connection, which is non-blocking.
    ///   - response: The response, which is kept for further connections.
    ///   - isKept: Whether the connection may stay open.
    mutating func refuse(
        _ descriptor: CInt,
        _ refusal: Refusal,
        with response: [UInt8],
        isKept: Bool,
        now: ContinuousClock.Instant
    ) {
        if responses[refusal] == nil, responses.count >= Self.mostResponses { responses = [:] }
        responses[refusal] = response
        let sent = send(descriptor, response, response.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
        // A client that has already closed its end reads nothing.
        guard isKept, sent == response.count, shutdown(descriptor, CInt(SHUT_WR)) == 0 else {
            close(descriptor)
            return
        }
        entries.append(Entry(descriptor: descriptor, since: now))
        if entries.count > limit { close(entries.removeFirst().descriptor) }
    }

    /// Closes the connections that had enough time to read their responses. Forgets all responses, because a reload may
    /// change them. Must be called about every second.
    mutating func closeOld(now: ContinuousClock.Instant) {
        responses = [:]
        let count = entries.prefix { now - $0.since >= Self.lingerTime }.count
        for entry in entries.prefix(count) { close(entry.descriptor) }
        entries.removeFirst(count)
    }

    /// Closes all connections.
    mutating func closeAll() {
        for entry in entries { close(entry.descriptor) }
        entries = []
    }
}

extension ControlResponse {
    /// The response as the last message of a connection, for a client whose request is not parsed.
    var lastMessage: [UInt8] {
        var head = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        head += "content-length: \(body.count)\r\nconnection: close\r\n\r\n"
        return Array(head.utf8) + body
    }
}

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

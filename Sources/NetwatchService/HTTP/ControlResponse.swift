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

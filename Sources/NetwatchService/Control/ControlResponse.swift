package import FoundationEssentials
package import NIOHTTP1

/// What a handler answers. The server adds `Content-Length` and `Connection`.
package struct ControlResponse: Sendable {
    package var status: HTTPResponseStatus
    package var headers: HTTPHeaders
    package var body: [UInt8]

    package init(status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The problem as `application/problem+json`.
    package init(_ problem: Problem) {
        self = .encoded(problem, status: problem.status, type: "application/problem+json")
        if let seconds = problem.retryAfter { headers.add(name: "retry-after", value: "\(seconds)") }
    }

    /// A value as `application/json`, keys sorted. A value that cannot be encoded becomes a 500 problem.
    package static func json(
        _ value: some Encodable,
        status: HTTPResponseStatus = .ok,
        encoder: JSONEncoder = Self.encoder
    ) -> ControlResponse {
        encoded(value, status: status, type: "application/json", encoder: encoder)
    }

    /// Sorted keys and plain slashes, so that answers are stable and readable.
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

    /// `curl` leaves the shell's prompt on a line of its own.
    private static let newline = UInt8(ascii: "\n")
}

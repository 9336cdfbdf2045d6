package import FoundationEssentials
package import NIOHTTP1

/// The response of a handler. The server adds `Content-Length` and `Connection`.
package struct ControlResponse: Sendable {
    package var status: HTTPResponseStatus
    package var headers: HTTPHeaders
    package var body: [UInt8]

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

    /// Returns a response with a value as `application/json`. A value that cannot be encoded becomes a 500 problem.
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

    /// Ends every body, so that the shell prompt after `curl` starts on a new line.
    private static let newline = UInt8(ascii: "\n")
}

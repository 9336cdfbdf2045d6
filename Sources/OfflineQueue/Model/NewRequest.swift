internal import ClientCore
internal import Foundation
internal import NetwatchTransport

/// A checked request, ready to be stored.
package struct NewRequest: Sendable {
    package let id: String
    package let lane: LaneKey
    package let request: QueueRequest
    package let idempotencyKey: String?

    /// Checks a request and its options and fills in what they leave open.
    package init(_ request: QueueRequest, options: EnqueueOptions) throws(QueueError) {
        try Self.check(method: request.method, hasBody: !request.body.isEmpty)
        guard request.body.count <= QueueRequest.maximumBodyBytes else {
            let limit = QueueRequest.maximumBodyBytes
            throw QueueError(
                .bodyTooLarge,
                "the body has \(request.body.count) bytes, and at most \(limit) are kept"
            )
        }
        try Self.check(request.headers)
        let given = options.idempotencyKey ?? request.headers.first { Self.isKeyHeader($0) }?.value
        try Self.check(options, key: given)
        let label = options.lane ?? ""
        let mode: LaneKey.Mode = options.isFIFO ? .fifo : .parallel
        id = options.id ?? UUIDv7.make()
        lane = LaneKey(origin: try Origin(url: request.url), label: label, mode: mode)
        idempotencyKey =
            given ?? (HTTPMethod.isIdempotent(request.method) ? nil : UUID().uuidString.lowercased())
        var stored = request
        stored.headers.removeAll(where: Self.isKeyHeader)
        self.request = stored
    }

    static let keyHeader = "Idempotency-Key"

    /// They say where the body ends, which two must not say differently.
    private static let framingHeaders: Set<String> = ["content-length", "transfer-encoding"]

    private static let secretHeaders: Set<String> = ["authorization", "cookie", "proxy-authorization"]

    private static func isKeyHeader(_ header: QueueRequest.Header) -> Bool {
        header.name.lowercased() == keyHeader.lowercased()
    }

    private static func check(_ headers: [QueueRequest.Header]) throws(QueueError) {
        let limit = QueueRequest.maximumHeadBytes
        let bytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard bytes <= limit else {
            throw QueueError(.invalidHeader, "the headers have \(bytes) bytes, and at most \(limit) are kept")
        }
        for header in headers {
            guard HTTPToken.isValid(header.name) else {
                throw QueueError(
                    .invalidHeader,
                    "the header name \(quoted(header.name)) is not a token of RFC 9110, like X-Note"
                )
            }
            guard !secretHeaders.contains(header.name.lowercased()) else {
                throw QueueError(.secretHeader, "\(header.name) is refused: secrets are not stored")
            }
            guard !framingHeaders.contains(header.name.lowercased()) else {
                throw QueueError(.invalidHeader, "\(header.name) is set by the client, not by the caller")
            }
            guard isFieldValue(header.value) else {
                throw QueueError(.invalidHeader, "the value of \(header.name) holds CR, LF or NUL")
            }
        }
    }

    private static func check(method: String, hasBody: Bool) throws(QueueError) {
        guard HTTPToken.isValid(method) else {
            throw QueueError(
                .invalidMethod,
                "the method \(quoted(method)) is not a token of RFC 9110, like POST"
            )
        }
        guard method != "CONNECT" else {
            throw QueueError(.invalidMethod, "CONNECT is not a request to a server")
        }
        guard method != "HEAD" || !hasBody else {
            throw QueueError(.invalidMethod, "a HEAD request has no body")
        }
    }

    private static func check(_ options: EnqueueOptions, key: String?) throws(QueueError) {
        if let key, !isPrintable(key) {
            throw QueueError(.invalidOption, "the idempotency key is not 1 to 255 bytes of printable ASCII")
        }
        if let id = options.id, !isPrintable(id) {
            throw QueueError(.invalidOption, "the id is not 1 to 255 bytes of printable ASCII")
        }
        if let lane = options.lane, lane.isEmpty || lane.utf8.count > 255 {
            throw QueueError(.invalidOption, "the lane's label is not 1 to 255 bytes long")
        }
    }

    private static func isFieldValue(_ text: String) -> Bool {
        !text.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }
    }

    private static func isPrintable(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }
}

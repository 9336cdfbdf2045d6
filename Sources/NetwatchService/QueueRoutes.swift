internal import Foundation
internal import NIOHTTP1
package import OfflineQueue

/// The routes of the control API that reach the queue.
package struct QueueRoutes: Sendable {
    private let queue: OfflineQueue

    package init(queue: OfflineQueue) {
        self.queue = queue
    }

    package var router: ControlRouter {
        ControlRouter([
            .init(.POST, "/v1/requests") { await answering { try await send($0) }($0) },
            .init(.GET, "/v1/requests") { await answering { try await list($0) }($0) },
            .init(.POST, "/v1/queue/flush") { await answering { _ in try await flush() }($0) },
        ])
    }

    /// Turns what a route throws into a problem.
    private func answering(
        _ route: @escaping @Sendable (ControlRequest) async throws -> ControlResponse
    ) -> @Sendable (ControlRequest) async -> ControlResponse {
        { request in
            do {
                return try await route(request)
            } catch let problem as Problem {
                return ControlResponse(problem)
            } catch let error as QueueError {
                return ControlResponse(Problem(error))
            } catch {
                return ControlResponse(
                    Problem(.internalServerError, code: "internal_error", detail: "\(error)")
                )
            }
        }
    }

    // MARK: Sending

    private func send(_ request: ControlRequest) async throws -> ControlResponse {
        let message = try Self.decode(ControlMessage.Send.self, from: request.body)
        let result = try await queue.send(try message.queueRequest(), options: message.options)
        let sent = ControlMessage.Sent(result)
        return .json(sent, status: sent.state == "queued" ? .accepted : .ok, encoder: ControlMessage.encoder)
    }

    private static func decode<Message: Decodable>(
        _: Message.Type,
        from body: [UInt8]
    ) throws(Problem) -> Message {
        do {
            return try ControlMessage.decoder.decode(Message.self, from: Data(body))
        } catch {
            throw Problem(
                .badRequest,
                code: "malformed_body",
                detail: "the body is not the JSON expected: \(describe(error))"
            )
        }
    }

    private static func describe(_ error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, _): "`\(key.stringValue)` is missing"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            "`\(context.codingPath.map(\.stringValue).joined(separator: "."))` has the wrong type"
        case DecodingError.dataCorrupted: "it is not valid JSON"
        default: "\(error)"
        }
    }

    // MARK: Listing and flushing

    /// How many requests one answer lists: by default, and at most.
    private static let defaultLimit = 100
    private static let longestList = 1000

    private func list(_ request: ControlRequest) async throws -> ControlResponse {
        let page = try await queue.list(RequestQuery(limit: try limit(in: request)))
        let counts = try await queue.counts
        let states = QueuedRequest.State.allCases
        let message = ControlMessage.List(
            requests: page.requests.map(ControlMessage.Entry.init),
            counts: Dictionary(uniqueKeysWithValues: states.map { ($0.rawValue, counts[$0]) })
        )
        return .json(message, encoder: ControlMessage.encoder)
    }

    private func limit(in request: ControlRequest) throws(Problem) -> Int {
        guard let item = request.query.first(where: { $0.name == "limit" }) else { return Self.defaultLimit }
        guard let limit = item.value.flatMap({ Int($0) }), (1...Self.longestList).contains(limit) else {
            throw Problem(
                .badRequest,
                code: "invalid_limit",
                detail: "`limit` is `\(item.value ?? "")`; it has to be 1 to \(Self.longestList)"
            )
        }
        return limit
    }

    private func flush() async throws -> ControlResponse {
        try await queue.flush()
        let counts = try await queue.counts
        return .json(
            ControlMessage.Flushed(requests: counts[.pending] + counts[.inflight]),
            encoder: ControlMessage.encoder
        )
    }
}

extension ControlMessage.Send {
    fileprivate func queueRequest() throws(Problem) -> QueueRequest {
        QueueRequest(
            method: method ?? "GET",
            url: url,
            headers: try queueHeaders(),
            body: try bodyData()
        )
    }

    fileprivate var options: EnqueueOptions {
        var options = EnqueueOptions(lane: lane, isFIFO: fifo ?? false, id: id)
        if let idempotencyKey { options.idempotencyKey = .value(idempotencyKey) }
        return options
    }

    private func queueHeaders() throws(Problem) -> [QueueRequest.Header] {
        var result: [QueueRequest.Header] = []
        for header in headers ?? [] {
            guard header.count == 2 else {
                throw Problem(
                    .badRequest,
                    code: "malformed_body",
                    detail: "each of `headers` has to be a name and a value"
                )
            }
            result.append(QueueRequest.Header(name: header[0], value: header[1]))
        }
        return result
    }

    private func bodyData() throws(Problem) -> Data {
        guard let bodyBase64 else { return Data((body ?? "").utf8) }
        guard body == nil, let data = Data(base64Encoded: bodyBase64) else {
            throw Problem(
                .badRequest,
                code: "malformed_body",
                detail: "`body_base64` has to be valid Base64, and excludes `body`"
            )
        }
        return data
    }
}

extension ControlMessage.Sent {
    fileprivate init(_ result: SendResult) {
        switch result {
        case .delivered(let id, let status, let body):
            self.init(
                id: id,
                state: "delivered",
                status: status,
                bodyBase64: body.isEmpty ? nil : body.base64EncodedString()
            )
        case .queued(let id, let reason):
            self.init(id: id, state: "queued", reason: "\(reason)")
        case .dead(let id, let reason):
            self.init(id: id, state: "dead", reason: reason)
        case .dropped(let id):
            self.init(id: id, state: "dropped", reason: "the queue is full")
        }
    }
}

extension ControlMessage.Entry {
    fileprivate init(_ request: QueuedRequest) {
        self.init(
            id: request.id,
            state: request.state.rawValue,
            holdReason: request.holdReason?.rawValue,
            method: request.method,
            url: request.url,
            lane: request.lane,
            fifo: request.isFIFO,
            attempts: request.attempts,
            deferrals: request.deferrals,
            created: request.created,
            due: request.due,
            finished: request.finished,
            status: request.status,
            lastError: request.lastError
        )
    }
}

extension Problem {
    fileprivate init(_ error: QueueError) {
        self.init(Self.status(of: error.code), code: error.code.rawValue, detail: error.message)
    }

    private static func status(of code: QueueError.Code) -> HTTPResponseStatus {
        switch code {
        case .invalidURL, .invalidMethod, .invalidHeader, .secretHeader, .invalidOption, .unknownDependency,
            .cyclicDependency, .invalidImport, .bodyFileUnusable:
            .badRequest
        case .unknownRequest, .unknownStagedBody: .notFound
        case .wrongOffset: .conflict
        case .bodyTooLarge: .payloadTooLarge
        // RFC 4918 §11.5: the request was fine, the queue or its disk had no room.
        case .queueFull, .storeFailed, .insufficientSpace, .spoolFailed: .insufficientStorage
        case .alreadyOwned, .directoryUnusable, .storeUnusable, .storeUnavailable, .tooManyStagedBodies,
            .stopped:
            .serviceUnavailable
        }
    }
}

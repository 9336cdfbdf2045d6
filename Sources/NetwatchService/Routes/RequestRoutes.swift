internal import Foundation
internal import NIOHTTP1
internal import OfflineQueue

/// What may be known of requests.
extension QueueRoutes {
    var requestRoutes: [ControlRouter.Route] {
        [
            route(.GET, "/v1/requests", query: ["state", "host", "lane", "limit", "after"]) {
                try await list($0)
            },
            route(.GET, "/v1/requests/{id}", query: ["wait"]) { try await show($0) },
        ]
    }

    private func list(_ request: ControlRequest) async throws -> ControlResponse {
        let page = try await queue.list(try RequestQuery(request))
        let message = ControlMessage.List(
            requests: page.requests.map(ControlMessage.Entry.init),
            counts: try await queue.counts.byName,
            next: page.next.map(\.text)
        )
        return .json(message, encoder: ControlMessage.encoder)
    }

    private func show(_ request: ControlRequest) async throws -> ControlResponse {
        let id = try await id(in: request)
        let patience = try request.seconds("wait", atMost: ControlMessage.longestWait) ?? .zero
        guard let details = try await queue.result(of: id, within: patience) else {
            throw QueueError(.unknownRequest, "the request `\(id)` has just been forgotten")
        }
        return .json(ControlMessage.Details(details), encoder: ControlMessage.encoder)
    }
}

extension RequestQuery {
    private static let defaultLimit = 100

    fileprivate init(_ request: ControlRequest) throws(Problem) {
        let limit = try request.number("limit", in: 1...ControlMessage.longestPage)
        self.init(states: try Self.states(in: request), limit: limit ?? Self.defaultLimit)
        host = request.value(of: "host")
        lane = request.value(of: "lane")
        guard let text = request.value(of: "after") else { return }
        guard let cursor = ListCursor(text: text) else {
            throw .malformedQuery("after", text, accepted: "the `next` of the page before")
        }
        after = cursor
    }

    private static func states(in request: ControlRequest) throws(Problem) -> Set<QueuedRequest.State>? {
        var states: Set<QueuedRequest.State> = []
        let names = request.values(of: "state").flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false)
        }
        for name in names {
            guard let state = QueuedRequest.State(rawValue: String(name)) else {
                let accepted = QueuedRequest.State.allCases.map(\.rawValue).joined(separator: ", ")
                throw .malformedQuery("state", String(name), accepted: "one of \(accepted)")
            }
            states.insert(state)
        }
        return names.isEmpty ? nil : states
    }
}

extension ListCursor {
    /// What clients hand back and should not look into.
    fileprivate var text: String { (isFinished ? "f" : "w") + String(position) }

    fileprivate init?(text: String) {
        guard let kind = text.first, kind == "f" || kind == "w", let position = Int64(text.dropFirst()) else {
            return nil
        }
        self.init(isFinished: kind == "f", position: position)
    }
}

extension QueueCounts {
    var byName: [String: Int] {
        Dictionary(uniqueKeysWithValues: QueuedRequest.State.allCases.map { ($0.rawValue, self[$0]) })
    }
}

// MARK: - Messages

extension QueuedRequest {
    /// What keeps it now goes before what happened at its last attempt.
    fileprivate var reason: String? {
        if let holdReason { return "\(QueuedReason.held(holdReason))" }
        if waitsForResources { return "\(QueuedReason.localShortage)" }
        if waitsForSlot { return "\(QueuedReason.noFreeSlot)" }
        return laneClosure.map { "\($0)" } ?? lastError
    }
}

extension ControlMessage.Entry {
    init(_ request: QueuedRequest) {
        self.init(
            id: request.id,
            state: request.state.rawValue,
            holdReason: request.holdReason?.rawValue,
            method: request.method,
            url: request.url,
            lane: request.lane,
            fifo: request.isFIFO,
            priority: request.priority,
            bodyBytes: request.bodyBytes,
            attempts: request.attempts,
            deferrals: request.deferrals,
            created: request.created,
            due: request.due,
            expires: request.expires,
            finished: request.finished,
            status: request.status,
            lastError: request.lastError,
            reason: request.reason,
            laneClosedUntil: request.laneClosure?.until,
            laneClosedBy: request.laneClosure?.status
        )
    }
}

extension ControlMessage.Details {
    init(_ details: RequestDetails) {
        self.init(
            request: ControlMessage.Entry(details.summary),
            headers: details.headers.map { [$0.name, $0.value] },
            idempotencyKey: details.idempotencyKey,
            replaceKey: details.replaceKey,
            after: details.dependencies,
            atMostOnce: details.isAtMostOnce,
            attempts: details.attempts.map(ControlMessage.Attempt.init),
            response: details.response.map(ControlMessage.Response.init)
        )
    }
}

extension ControlMessage.Attempt {
    fileprivate init(_ attempt: RecordedAttempt) {
        let (seconds, attoseconds) = attempt.duration.components
        self.init(
            number: attempt.number,
            started: attempt.started,
            durationSeconds: Double(seconds) + Double(attoseconds) / 1e18,
            status: attempt.status,
            curlCode: attempt.curlCode,
            error: attempt.error
        )
    }
}

extension ControlMessage.Response {
    fileprivate init(_ response: RecordedResponse) {
        self.init(
            status: response.status,
            headers: response.headers.map { [$0.name, $0.value] },
            bodyBase64: response.body.base64EncodedString(),
            truncated: response.isTruncated
        )
    }
}

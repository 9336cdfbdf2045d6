internal import ClientCore
internal import Foundation
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import OfflineQueue

/// Routes that read requests.
extension QueueRoutes {
    var requestRoutes: [ControlRouter.Route] {
        [
            route(
                .GET,
                "/v1/requests",
                access: .read,
                query: ["state", "host", "lane", "tag", "submitter", "limit", "after"],
                lists: ["state"]
            ) { try await list($0) },
            route(.GET, "/v1/requests/{id}", access: .read, query: ["wait"], classify: Self.waiting) {
                try await show($0)
            },
            route(.GET, "/v1/ids", access: .read, query: ["prefix"]) { try await ids($0) },
        ]
    }

    private static let waiting: ControlRouter.Classifier = { query in
        query.contains { $0.name == "wait" } ? .wait : .call
    }

    private func list(_ request: ControlRequest) async throws -> ControlResponse {
        var query = try RequestQuery(request)
        let submitter = try request.submitter()
        // Otherwise the result would show the labels, tags and submitters of the requests of other users.
        if query.lane != nil || query.tag != nil || submitter != nil {
            query.submitter = try request.caller.selected(submitter).map(SelectedSubmitter.user)
        }
        return try await largeResponses.run(for: request.caller.user) { [query] in
            let page = try await queue.list(query)
            let message = ControlMessage.List(
                requests: page.requests.map { ControlMessage.Listed($0, for: request.caller) },
                counts: try await queue.counts.byName,
                next: page.next.map(\.text)
            )
            return .json(message, encoder: ControlMessage.encoder)
        }
    }

    private func show(_ request: ControlRequest) async throws -> ControlResponse {
        let id = id(in: request)
        let timeout = try request.seconds("wait", atMost: ControlMessage.longestWait) ?? .zero
        if timeout > .zero { try await queue.waitUntilFinished(id, within: timeout) }
        return try await largeResponses.run(for: request.caller.user) {
            guard let details = try await queue.request(id) else {
                throw Problem.unknownRequest(id)
            }
            return .json(ControlMessage.Shown(details, for: request.caller), encoder: ControlMessage.encoder)
        }
    }

    /// The maximum number of ids that `GET /v1/ids` returns: one more than the commands list, so that they know whether
    /// there are more.
    private static let mostCandidates = 5

    private func ids(_ request: ControlRequest) async throws -> ControlResponse {
        guard let prefix = request.value(of: "prefix"), !prefix.isEmpty else {
            throw Problem(.badRequest, code: "invalid_prefix", detail: "`prefix` is missing or empty")
        }
        let found = try await queue.ids(beginningWith: prefix, limit: Self.mostCandidates)
        return .json(ControlMessage.IDs(ids: found), encoder: ControlMessage.encoder)
    }
}

extension RequestQuery {
    private static let defaultLimit = 100

    fileprivate init(_ request: ControlRequest) throws(Problem) {
        let limit = try request.number("limit", in: 1...ControlMessage.longestPage)
        let names = request.values(of: "state").flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let states = try QueuedRequest.State.named(names)
        self.init(states: names.isEmpty ? nil : states, limit: limit ?? Self.defaultLimit)
        maximumBytes = ControlMessage.longestPageBytes
        host = try request.value(of: "host").map(Problem.host)
        lane = request.value(of: "lane")
        tag = try request.value(of: "tag").map(Problem.tag)
        guard let text = request.value(of: "after") else { return }
        guard let cursor = ListCursor(text: text) else {
            throw .malformedQuery("after", text, accepted: "the `next` of the previous page")
        }
        after = cursor
    }
}

extension QueuedRequest.State {
    /// - Throws: ``Problem`` with `invalid_state`, which names the first unknown state.
    static func named(_ names: [String]) throws(Problem) -> Set<QueuedRequest.State> {
        var states: Set<QueuedRequest.State> = []
        for name in names {
            guard let state = QueuedRequest.State(rawValue: name) else {
                let accepted = allCases.map(\.rawValue).joined(separator: ", ")
                throw .malformedQuery("state", name, accepted: "one of \(accepted)")
            }
            states.insert(state)
        }
        return states
    }
}

extension ListCursor {
    /// The cursor as an opaque text, which clients pass as `after` to get the next page.
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
    /// Why the request is not delivered, for people. The current obstacle takes precedence over the result of the last
    /// attempt.
    fileprivate var reason: String? {
        if let holdReason {
            // If a user holds a request, the error is that of the last attempt, which is not the cause.
            let held = "\(QueuedReason.held(holdReason))"
            return holdReason == .user ? held : withCause(held) + (lacksCredential ? Self.noCredential : "")
        }
        switch state {
        case .inflight: return lastError.map { "an earlier attempt failed: \($0)" }
        case .cancelled: return withLastError("dropped")
        case .superseded: return withLastError("replaced by a newer request")
        default: break
        }
        switch waitReason {
        case .attemptFailed?, nil: return lastError
        case .noFreeSlot?: return "\(QueuedReason.noFreeSlot)\(originLimit.map(Self.overload) ?? "")"
        case .localShortage?: return withCause("\(QueuedReason.localShortage)")
        case .laneClosed?:
            guard let laneClosure else { return "\(QueuedReason.laneClosed)" }
            // The text about `Retry-After` already contains the status of that response.
            return laneClosure.cause == .retryAfter ? "\(laneClosure)" : withCause("\(laneClosure)")
        case let waitReason?: return waitReason.words(at: Date())
        }
    }

    /// Whether a server rejected the request because it has no credential.
    private var lacksCredential: Bool { holdReason == .auth && credential == nil && status == 401 }

    private static let noCredential = "; \(ControlMessage.Entry.noCredential)"

    /// Adds the last error to a reason, because the error is the cause.
    private func withCause(_ reason: String) -> String { reason + (lastError.map { ": \($0)" } ?? "") }

    private static func overload(_ limit: Int) -> String {
        "; after overload, the limit of requests in flight to the origin is \(limit)"
    }

    /// Adds the last error to the cause of the request's end, because the error is not the cause.
    private func withLastError(_ cause: String) -> String {
        cause + (lastError.map { "; last error: \($0)" } ?? "")
    }

    /// When the time window opens for which the request waits; `nil` if it does not wait for one.
    fileprivate var windowOpening: Date? { waitReason?.windowOpening(after: Date()) }
}

extension QueuedReason {
    /// The reason in words, with the time at which a window opens.
    func words(at now: Date) -> String {
        "\(self)" + (windowOpening(after: now).map { ", which opens at \($0.rfc3339)" } ?? "")
    }

    fileprivate func windowOpening(after now: Date) -> Date? {
        guard case .constraint(.window(let window)) = self else { return nil }
        return window.nextOpening(from: now)
    }

    /// The value of `waits_for` in the API; `nil` for reasons that a pending or blocked request cannot have.
    fileprivate var name: String? {
        switch self {
        case .notReachable: "network"
        case .captivePortal: "portal"
        case .attemptFailed: "retry"
        case .laneClosed: "lane"
        case .noFreeSlot: "slot"
        case .paced: "pace"
        case .constraint: "constraint"
        case .rateLimited: "rate"
        case .retryBudget: "budget"
        case .localShortage: "resources"
        case .behindEarlier: "earlier"
        case .blocked: "dependencies"
        case .scheduled: "time"
        case .paused: "resume"
        case .held, .alreadyQueued, .stopped, .cancelled: nil
        }
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
            tag: request.tag,
            submitter: request.submitter,
            bodyBytes: request.bodyBytes,
            attempts: request.attempts,
            deferrals: request.deferrals,
            created: request.created,
            due: request.due,
            nextTry: request.nextTry,
            expires: request.expires,
            finished: request.finished,
            status: request.status,
            lastError: request.lastError,
            reason: request.reason,
            waitsFor: request.waitReason?.name,
            waitsForRequest: request.waitsForID,
            windowOpens: request.windowOpening,
            laneClosedUntil: request.laneClosure?.until,
            laneClosedBy: request.laneClosure?.status
        )
    }
}

extension ControlMessage.Details {
    init(_ details: RequestDetails) {
        self.init(
            request: ControlMessage.Entry(details.summary),
            unreadable: details.unreadable,
            headers: details.areHeadersHidden ? nil : details.headers.map { [$0.name, $0.value] },
            idempotencyKey: details.idempotencyKey,
            replaceKey: details.options.replaceKey,
            replacedBy: details.replacedBy,
            after: details.dependencies,
            atMostOnce: details.options.isAtMostOnce,
            expect: details.options.expectation == .success ? nil : details.options.expectation.description,
            credential: details.options.credential,
            onDone: details.options.onDone?.redacted,
            webhook: details.webhookID,
            webhookOf: details.webhookOf,
            constraints: details.options.constraints.isEmpty ? nil : details.options.constraints.description,
            connectTimeoutSeconds: details.timeouts.connect / .seconds(1),
            responseTimeoutSeconds: details.timeouts.response / .seconds(1),
            totalTimeoutSeconds: details.timeouts.total.map { $0 / .seconds(1) },
            httpVersion: details.options.httpVersion?.rawValue,
            retryStatuses: details.options.statusRules.retry.text,
            deadStatuses: details.options.statusRules.dead.text,
            busyUntil: details.busyUntil,
            attempts: details.attempts.map(ControlMessage.Attempt.init),
            response: details.response.map(ControlMessage.Response.init)
        )
    }
}

extension [ClosedRange<Int>] {
    /// The statuses as text; `nil` if there are none.
    fileprivate var text: String? { isEmpty ? nil : StatusRanges.text(self) }
}

extension RequestDetails {
    /// Whether the header fields may be left out because they cannot be decrypted.
    fileprivate var areHeadersHidden: Bool { unreadable != nil && headers.isEmpty }
}

extension ControlMessage.Attempt {
    fileprivate init(_ attempt: RecordedAttempt) {
        self.init(
            number: attempt.number,
            started: attempt.started,
            durationSeconds: attempt.duration / .seconds(1),
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

extension Webhook {
    /// The webhook with its URL shown in the same way as that of a request.
    fileprivate var redacted: Webhook {
        Webhook(url: SecretQueryItems.redacting(url), credential: credential)
    }
}

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
                counts: try await queue.counts,
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
            let shown = ControlMessage.Versioned(ControlMessage.Shown(details, for: request.caller))
            return .json(shown, encoder: ControlMessage.encoder)
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

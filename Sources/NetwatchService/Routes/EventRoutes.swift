internal import NIOHTTP1
internal import OfflineQueue

/// The route for the events of the queue.
extension QueueRoutes {
    var eventRoutes: [ControlRouter.Route] {
        [
            route(
                .GET,
                "/v1/events",
                access: .read,
                query: ["state", "host", "lane", "tag", "submitter", "after"],
                lists: ["state"],
                classify: { _ in .wait }
            ) { try await events($0) }
        ]
    }

    private func events(_ request: ControlRequest) async throws -> ControlResponse {
        try requireRunning()
        let filter = try QueueEventFilter(request)
        let position = try EventID(request)
        let events = try await queue.events
        let client = eventRetention.connected(to: events)
        let resumed = position.flatMap { $0.run == events.run ? events.resumed(after: $0.number) : nil }
        // The stream may last for days, so it must not retain the request.
        let (caller, peer) = (request.caller, request.peer)
        let stream = EventStream(resumed ?? events, filter, client, for: caller) { [access] in
            access.policy.caller(peer) == caller
        }
        var response = ControlResponse(
            status: .ok,
            headers: ["content-type": "text/event-stream", "cache-control": "no-store"],
            body: await stream.opening(isReset: position != nil && resumed == nil)
        )
        response.stream = ControlStream(keepAlive: EventStream.keepAlive) { await stream.next() }
        return response
    }
}

extension EventID {
    /// The position in the header `Last-Event-ID`, or else in the query; `nil` without both. Browsers send an empty
    /// header if they have received no id.
    fileprivate init?(_ request: ControlRequest) throws(Problem) {
        let header = request.headers.first(name: "last-event-id").flatMap { $0.isEmpty ? nil : $0 }
        guard let text = header ?? request.value(of: "after") else { return nil }
        guard let id = EventID(text) else {
            throw .malformedQuery("after", text, accepted: "the `id` of an event")
        }
        self = id
    }
}

extension QueueEventFilter {
    fileprivate init(_ request: ControlRequest) throws(Problem) {
        let names = request.values(of: "state").flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        states = names.isEmpty ? nil : try QueuedRequest.State.named(names)
        host = try request.value(of: "host").map(Problem.host)
        lane = request.value(of: "lane")
        tag = try request.value(of: "tag").map(Problem.tag)
        if let user = try request.submitter() { submitter = try request.caller.selected(user) }
    }
}

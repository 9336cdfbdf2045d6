internal import Foundation
internal import NIOHTTP1
internal import NetwatchEventLoop
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

/// The filter of a stream of events. Its parameters have the same names as in the filter of the list.
struct QueueEventFilter: Hashable {
    /// Selects events after which the request is in one of these states; `nil` selects any, and events of lanes.
    var states: Set<QueuedRequest.State>?
    /// Selects events of this host, and those of the whole queue; `nil` selects any.
    var host: String?
    /// Selects events of lanes with this label, and those of the whole queue. Empty selects lanes without a label;
    /// `nil` selects any.
    var lane: String?

    /// Selects events of requests with this tag; `nil` selects any, and events of lanes and of the whole queue.
    var tag: String?
    /// Selects events of the requests and lanes of this user, and those of the whole queue; `nil` selects any.
    var submitter: UInt32?

    func matches(_ event: QueueEvent) -> Bool {
        guard event.kind != .lost else { return true }
        if let states, event.newState.map(states.contains) != true { return false }
        if let tag, event.tag != tag { return false }
        // An event of the whole queue concerns every host and lane.
        guard let eventHost = event.host else { return true }
        if let submitter, event.submitter != submitter { return false }
        return (host ?? eventHost) == eventHost && (lane ?? event.lane ?? "") == (event.lane ?? "")
    }
}

/// The events for one client, as server-sent events (WHATWG HTML §9.2).
actor EventStream {
    /// A comment, which clients ignore.
    static let keepAlive = Array(":\n\n".utf8)
    /// After this number of events that do not match the filter, the client receives an id, so that it can still resume
    /// the stream. The number is much smaller than the capacity of the buffer.
    private static let idInterval: UInt64 = 1024

    private var events: QueueEvents.Iterator
    private let filter: QueueEventFilter
    private let run: String
    private let client: EventRetention.Client
    private let caller: Caller
    /// Returns whether the caller still has the access with which the stream began.
    private let isAccessUnchanged: @Sendable () -> Bool
    private let encoder = ControlMessage.encoder
    /// The number of the last event whose id the client has received.
    private var lastNumber: UInt64

    init(
        _ events: QueueEvents,
        _ filter: QueueEventFilter,
        _ client: EventRetention.Client,
        for caller: Caller,
        isAccessUnchanged: @escaping @Sendable () -> Bool
    ) {
        self.events = events.makeAsyncIterator()
        self.filter = filter
        self.client = client
        self.caller = caller
        self.isAccessUnchanged = isAccessUnchanged
        run = events.run
        lastNumber = events.startNumber
    }

    /// The first bytes of the stream: how long a client waits before it reconnects, and where the stream begins.
    ///
    /// - Parameter isReset: Whether the client asked for events that are not known any more.
    func opening(isReset: Bool) -> [UInt8] {
        var text = "retry: 1000\n"
        if isReset {
            text += encoded(ControlMessage.Event(id: id(lastNumber), event: "reset", time: Date()))
        } else {
            text += "id: \(id(lastNumber))\n\n"
        }
        return Array(text.utf8)
    }

    /// Waits for events that match the filter; `nil` when the queue stops, and instead of events that occur after the
    /// caller's access has changed.
    func next() async -> [UInt8]? {
        while true {
            // The iterator is copied, because an actor's property cannot be passed inout to an asynchronous method.
            var iterator = events
            let batch = await iterator.nextBatch()
            events = iterator
            guard let last = batch.last?.number, isAccessUnchanged() else { return nil }
            let text = text(batch, last: last)
            if !text.isEmpty { return Array(text.utf8) }
        }
    }

    private func text(_ batch: [QueueEvent], last: UInt64) -> String {
        // The filter must not match what the caller may not read.
        let matching = batch.map { $0.visible(to: caller) }.filter(filter.matches)
        if let number = matching.last?.number { lastNumber = number }
        let text = matching.map { encoded(ControlMessage.Event($0, id: id($0.number))) }.joined()
        guard last - lastNumber >= Self.idInterval else { return text }
        lastNumber = last
        return text + "id: \(id(last))\n\n"
    }

    private func id(_ number: UInt64) -> String { EventID(run: run, number: number).description }

    /// Encoded JSON contains no line breaks, so `data` is one line.
    private func encoded(_ event: ControlMessage.Event) -> String {
        // Encoding fails only for numbers that JSON cannot express, which no event contains.
        let data = String(decoding: (try? encoder.encode(event)) ?? Data(), as: UTF8.self)
        return "id: \(event.id)\nevent: \(event.event)\ndata: \(data)\n\n"
    }
}

extension ControlMessage.Event {
    init(_ event: QueueEvent, id: String) {
        self.init(id: id, event: event.kind.rawValue, time: event.date)
        request = event.requestID
        host = event.host
        lane = event.lane
        tag = event.tag
        submitter = event.submitter
        oldState = event.oldState?.rawValue
        state = event.newState?.rawValue
        holdReason = event.holdReason?.rawValue
        due = event.due
        attempts = event.attempts
        status = event.status
        reason = event.reason
        lost = event.kind == .lost ? event.lostCount : nil
    }
}

/// Keeps the latest events in memory for a while after the last client has disconnected, so that it can reconnect
/// without losing any.
final class EventRetention: Sendable {
    /// How long events are kept without a client: 5 minutes. Without this limit, the queue would record events forever
    /// after the first client.
    static let time: Duration = .seconds(300)

    private struct State {
        var clients = 0
        /// While this exists, the queue records events.
        var events: QueueEvents?
        var expiry: Task<Void, any Error>?
    }

    /// A function that calls a closure after a delay, unless the returned task is cancelled before.
    typealias Timer = @Sendable (Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, any Error>

    private let state = Lock(State())
    private let timer: Timer

    /// - Parameter timer: Starts the time limit. Tests replace it.
    init(
        timer: @escaping Timer = { time, body in
            Task {
                try await Task.sleep(for: time)
                body()
            }
        }
    ) {
        self.timer = timer
    }

    /// The right of one connected client. Its end starts the time limit if it was the last one.
    final class Client: Sendable {
        private let retention: EventRetention

        fileprivate init(_ retention: EventRetention) {
            self.retention = retention
        }

        deinit {
            retention.disconnected()
        }
    }

    func connected(to events: QueueEvents) -> Client {
        let expiry = state.withLock { state in
            state.clients += 1
            state.events = events
            defer { state.expiry = nil }
            return state.expiry
        }
        expiry?.cancel()
        return Client(self)
    }

    private func disconnected() {
        state.withLock { state in
            state.clients -= 1
            guard state.clients == 0 else { return }
            state.expiry = timer(Self.time) { [weak self] in self?.expire() }
        }
    }

    private func expire() {
        state.withLock { state in
            if state.clients == 0 { state.events = nil }
        }
    }
}

/// The id of an event in a stream: the run of the queue, a hyphen, and the number of the event.
struct EventID: Hashable, CustomStringConvertible {
    let run: String
    let number: UInt64

    init(run: String, number: UInt64) {
        self.run = run
        self.number = number
    }

    /// Parses an id; `nil` if the text has another form.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, let number = UInt64(parts[1]), number < .max else {
            return nil
        }
        self.init(run: String(parts[0]), number: number)
    }

    var description: String { "\(run)-\(number)" }
}

internal import Foundation
internal import Logging
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The route `GET /v1/events`.
@Suite(.timeLimit(.minutes(5))) struct EventStreamTests {
    private let directory = try! ScratchDirectory()

    /// Opens a queue without starting it, so that it sends nothing.
    private func open() async throws -> OfflineQueue {
        try await OfflineQueue(configuration: OfflineQueue.Configuration(directory: directory.file("state")))
    }

    private func put(
        _ id: String,
        _ queue: OfflineQueue,
        lane: String? = nil,
        host: String = "a.example",
        tag: String? = nil
    ) async throws {
        var options = EnqueueOptions(lane: lane, id: id)
        options.tag = tag
        _ = try await queue.enqueue(QueueRequest(method: "POST", url: "https://\(host)/"), options: options)
    }

    private func connect(
        _ routes: QueueRoutes,
        _ target: String = "/v1/events",
        lastEventID: String? = nil
    ) async throws -> ControlResponse {
        let request = ControlRequest(
            method: .GET,
            target: try #require(RequestTarget(target)),
            headers: lastEventID.map { ["Last-Event-ID": $0] } ?? [:],
            peer: PeerCredentials(pid: 1, uid: 0, gid: 0)
        )
        return await routes.router.respond(to: request)
    }

    /// A server-sent event: its fields by name.
    private func parse(_ bytes: [UInt8]) -> [[String: String]] {
        String(decoding: bytes, as: UTF8.self).components(separatedBy: "\n\n").filter { !$0.isEmpty }.map {
            block in
            let fields = block.split(separator: "\n").map { $0.split(separator: ":", maxSplits: 1) }
            return Dictionary(fields.map { (String($0[0]), $0[1].trimmingPrefix(" ").description) }) { $1 }
        }
    }

    private func next(_ stream: ControlStream) async throws -> [[String: String]] {
        parse(try #require(await stream.next()))
    }

    private func data(_ event: [String: String]) throws -> ControlMessage.Event {
        try ControlMessage.decoder.decode(ControlMessage.Event.self, from: Data((event["data"] ?? "").utf8))
    }

    private func code(_ response: ControlResponse) -> String? {
        let object = try? JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
        return object?["code"] as? String
    }

    @Test func `a client receives the changes as server-sent events with JSON`() async throws {
        let queue = try await open()
        let response = try await connect(QueueRoutes(queue: queue, isRunning: true))
        #expect(response.status == .ok && response.headers["content-type"] == ["text/event-stream"])
        let opening = try #require(parse(response.body).first)
        #expect(opening["retry"] == "1000" && opening["data"] == nil)
        let stream = try #require(response.stream)
        try await put("a", queue, lane: "l")
        let event = try #require(try await next(stream).first)
        let message = try data(event)
        #expect(event["event"] == "enqueued" && event["id"] == message.id && message.event == "enqueued")
        #expect(
            message.v == 1 && message.request == "a" && message.host == "a.example" && message.lane == "l"
        )
        #expect(message.oldState == nil && message.state == "pending" && message.attempts == 0)
        #expect(event["data"]?.contains(#""v":1"#) == true)
        await queue.stop()
        #expect(await stream.next() == nil)
    }

    @Test func `filters select events as they select requests of the list`() async throws {
        let queue = try await open()
        let routes = QueueRoutes(queue: queue, isRunning: true)
        let held = try #require(try await connect(routes, "/v1/events?state=held,dead").stream)
        let host = try #require(try await connect(routes, "/v1/events?host=B.example").stream)
        let lane = try #require(try await connect(routes, "/v1/events?lane=l").stream)
        let bare = try #require(try await connect(routes, "/v1/events?lane=").stream)
        try await put("a", queue)
        let tagged = try #require(try await connect(routes, "/v1/events?tag=t").stream)
        try await put("b", queue, lane: "l", host: "b.example", tag: "t")
        _ = try await queue.hold(["a"])
        _ = try await queue.cancel(["b"])
        _ = try await queue.pause(host: nil, lane: nil)
        func names(_ stream: ControlStream) async throws -> [String] {
            try await next(stream).compactMap {
                try? "\($0["event"] ?? "") \(data($0).request ?? "")"
            }
        }
        #expect(try await names(held) == ["held a"])
        #expect(try await names(host) == ["enqueued b", "cancelled b", "queue_paused "])
        #expect(try await names(lane) == ["enqueued b", "cancelled b", "queue_paused "])
        #expect(try await names(tagged) == ["enqueued b", "cancelled b"])
        #expect(try await names(bare) == ["enqueued a", "held a", "queue_paused "])
        await queue.stop()
    }

    @Test func `a client that reconnects receives what it has missed, once`() async throws {
        let queue = try await open()
        let routes = QueueRoutes(queue: queue, isRunning: true)
        var id = ""
        do {
            let stream = try #require(try await connect(routes).stream)
            try await put("a", queue)
            id = try #require(try await next(stream).last?["id"])
        }
        try await put("b", queue)
        for target in ["/v1/events?after=\(id)", "/v1/events"] {
            let response = try await connect(routes, target, lastEventID: target.contains("after") ? nil : id)
            #expect(parse(response.body).first?["event"] == nil)
            let stream = try #require(response.stream)
            let missed = try await next(stream)
            #expect(try missed.map { try data($0).request } == ["b"])
        }
        await queue.stop()
    }

    @Test(arguments: ["other-1", "RUN-999999"])
    func `a position that is not known any more is answered with a reset`(id: String) async throws {
        let queue = try await open()
        let routes = QueueRoutes(queue: queue, isRunning: true)
        let current = try #require(parse(try await connect(routes).body).first?["id"])
        let run = try #require(current.split(separator: "-").first)
        let response = try await connect(routes, lastEventID: id.replacing("RUN", with: run))
        let reset = try #require(parse(response.body).first)
        #expect(reset["event"] == "reset" && reset["id"]?.hasPrefix("\(run)-") == true)
        #expect(try data(reset).event == "reset")
        try await put("a", queue)
        let stream = try #require(response.stream)
        let event = try #require(try await next(stream).first)
        #expect(event["event"] == "enqueued")
        await queue.stop()
    }

    @Test func `a slow client receives the number of lost events`() async throws {
        let queue = try await open()
        let stream = try #require(try await connect(QueueRoutes(queue: queue, isRunning: true)).stream)
        let count = 100
        for number in 0..<count { try await put("r\(number)", queue) }
        // More events than the shared buffer can hold, which is shortened when it has twice the guaranteed number.
        let edits = 100
        for _ in 0..<edits {
            _ = try await queue.hold(matching: RequestFilter())
            _ = try await queue.release(matching: RequestFilter())
        }
        let events = try await next(stream)
        let lost = try data(try #require(events.first))
        #expect(lost.event == "lost")
        var seen = try #require(lost.lost)
        let total = count + 2 * edits * count
        while seen < total { seen += try await next(stream).count }
        #expect(seen == total)
        await queue.stop()
    }

    @Test func `events are dropped when no client has reconnected for 5 minutes`() async throws {
        let feed = EventFeed()
        let (times, expiries) = (Recorder<Duration>(), Recorder<@Sendable () -> Void>())
        let retention = EventRetention { time, expire in
            times.record(time)
            expiries.record(expire)
            return Task {}
        }
        func connect() -> (events: QueueEvents, client: EventRetention.Client) {
            let events = QueueEvents(feed.subscribe())
            return (events, retention.connected(to: events))
        }
        let start = connect().events.startNumber
        try await times.wait { $0 == [EventRetention.time] }
        // Without a client, but before the time is over, events are recorded.
        feed.publish([QueueEvent(.queuePaused, at: Date())])
        #expect(connect().events.resumed(after: start) != nil)
        try await expiries.wait { $0.count == 2 }
        expiries.values[1]()
        #expect(connect().events.resumed(after: start) == nil)
    }

    @Test func `malformed queries are rejected by name`() async throws {
        let queue = try await open()
        let routes = QueueRoutes(queue: queue, isRunning: true)
        #expect(code(try await connect(routes, "/v1/events?state=lost")) == "invalid_state")
        #expect(code(try await connect(routes, "/v1/events?after=x")) == "invalid_after")
        #expect(code(try await connect(routes, "/v1/events?after=")) == "invalid_after")
        #expect(code(try await connect(routes, lastEventID: "run-")) == "invalid_after")
        #expect(code(try await connect(routes, lastEventID: "")) == nil, "browsers send an empty header")
        #expect(code(try await connect(routes, "/v1/events?since=1")) == "unknown_parameter")
        #expect(code(try await connect(QueueRoutes(queue: queue, isRunning: false))) == "not_running")
        await queue.stop()
    }

    // MARK: On the wire

    private func server(
        _ queue: OfflineQueue,
        _ adjust: (inout ControlServer.Limits) -> Void = { _ in }
    ) throws -> ControlServer {
        var limits = ControlServer.Limits()
        // On a busy machine, a client may take longer than the default.
        limits.headerDeadline = .seconds(60)
        adjust(&limits)
        return try ControlServer(
            path: directory.file("s"),
            router: QueueRoutes(queue: queue, isRunning: true).router,
            limits: limits,
            logger: Logger(label: "test")
        )
    }

    private static let request = "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test func `the stream is chunked, holds a slot of the waiting requests, and ends with the server`()
        async throws
    {
        let queue = try await open()
        let server = try server(queue) { $0.waits = 1 }
        let path = directory.file("s")
        let client = try await offPool {
            let client = try StreamClient(path)
            try client.send(Self.request)
            try client.receive(until: "\n\n")
            return client
        }
        #expect(client.text.contains("transfer-encoding: chunked") && !client.text.contains("content-length"))
        let refused = try await offPool { try RawClient(path).request(Self.request) }
        #expect(refused.problemCode == "busy")
        try await put("a", queue)
        try await offPool { try client.receive(until: "event: enqueued") }
        async let stopped: Void = server.stop()
        try await offPool { try client.receiveToEnd() }
        await stopped
        #expect(client.text.hasSuffix("\r\n0\r\n\r\n"))
        await queue.stop()
    }

    @Test func `a silent stream sends comments, and frees its slot when the client is gone`() async throws {
        let queue = try await open()
        let server = try server(queue) {
            $0.keepAliveInterval = .milliseconds(5)
            $0.waits = 1
        }
        let path = directory.file("s")
        try await offPool {
            let client = try StreamClient(path)
            try client.send(Self.request)
            try client.receive(until: ":\n\n\r\n3\r\n:\n\n")
        }
        // A client learns only from another request that a slot is free.
        try await poll {
            try await offPool {
                let client = try StreamClient(path)
                try client.send(Self.request)
                try client.receive(until: "\r\n\r\n")
                return client.text.contains("200 OK")
            }
        }
        await server.stop()
        await queue.stop()
    }
}

/// A client that collects everything it receives. Its methods block; only one thread at a time uses it.
private final class StreamClient: @unchecked Sendable {
    private let client: RawClient
    private(set) var text = ""

    init(_ path: String) throws {
        client = try RawClient(path)
    }

    func send(_ text: String) throws { try client.send(text) }

    func receive(until part: String) throws {
        while !text.contains(part) {
            guard try client.receiveMore() else { throw RawClientError.closedEarly(text.utf8.count) }
            text += client.takeReceived()
        }
    }

    func receiveToEnd() throws {
        while try client.receiveMore() { text += client.takeReceived() }
    }
}

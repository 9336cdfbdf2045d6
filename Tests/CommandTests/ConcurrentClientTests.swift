internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Many clients of the control socket that call the built service at the same time.
@Suite(.timeLimit(.minutes(5))) struct ConcurrentClientTests {
    private static let clients = 16
    private static let rounds = 6
    private static let followers = 4

    @Test func `concurrent clients receive correct responses, and each of their requests arrives once`()
        async throws
    {
        let server = try ScriptedServer { _ in .respond("thanks") }
        let service = try await RunningService(in: try ScratchDirectory())
        let (path, url) = (service.socket, server.url)
        let connected = Recorder<Bool>()
        let followers = (0..<Self.followers).map { _ in
            Task { try await offPool { try EventFollower(path, until: "last") { connected.record(true) } } }
        }
        try await connected.wait { $0.count == Self.followers }
        let results = try await withThrowingTaskGroup(of: ControlClient.Result.self) { group in
            for number in 0..<Self.clients {
                group.addTask {
                    try await offPool {
                        let client = try ControlClient(number, path, server: url)
                        for round in 0..<Self.rounds { try client.run(round) }
                        return client.result
                    }
                }
            }
            return try await group.reduce(into: [ControlClient.Result]()) { $0.append($1) }
        }
        // The followers stop at this event. All others were committed before it.
        let last = try await offPool {
            try ControlClient(Self.clients, path, server: url).enqueueForLater("last")
        }
        var expected: [String: String] = ["last": "pending"]
        for result in results { expected.merge(result.states) { first, _ in first } }
        #expect(results.flatMap(\.mismatches) == [] && last == "202 queued")
        for follower in followers {
            let seen = try await follower.value
            #expect(seen.states == expected && seen.mismatches == [])
        }
        let delivered = expected.filter { $0.value == "delivered" }.keys.map { "/\($0)" }
        #expect(server.requests.map(\.target).sorted() == delivered.sorted(), "each request arrived once")
        try await expectAlive(service, expected)
    }

    /// Expects that the process that the test started still serves requests, and that SIGTERM ends it with status 0.
    private func expectAlive(_ service: RunningService, _ expected: [String: String]) async throws {
        let status = try await Command.json(service.curl("/v1/status"))
        #expect(status["pid"] as? Int == Int(service.process.pid), "\(status)")
        let counts = try await service.counts().filter { $0.value > 0 }
        #expect(counts == Dictionary(grouping: expected.values, by: \.self).mapValues(\.count))
        try await service.stop()
    }
}

/// A client that edits only its own requests, so it knows each response. Its calls block.
///
/// Clients with an even number use one connection for all calls, the others a new one for each call.
private final class ControlClient {
    struct Result: Sendable {
        /// The responses that were not the expected ones.
        var mismatches: [String] = []
        /// The expected states of the client's requests after its calls.
        var states: [String: String] = [:]
    }

    private(set) var result = Result()
    private let number: Int
    private let path: String
    private let server: String
    private var connection: RawClient

    init(_ number: Int, _ path: String, server: String) throws {
        self.number = number
        self.path = path
        self.server = server
        connection = try RawClient(path)
    }

    /// Enqueues a request that is sent immediately and one that is sent a day later, and then reads and edits them.
    func run(_ round: Int) throws {
        let (sent, kept) = ("sent-\(number)-\(round)", "kept-\(number)-\(round)")
        let response = try enqueue(sent, #""queue":"\#(round.isMultiple(of: 2) ? "auto" : "always")""#)
        // Without a free slot, `auto` is the same as `always`.
        let isDelivered = round.isMultiple(of: 2) && response == "200 delivered"
        check("enqueue", response, isDelivered ? "200 delivered" : "202 queued")
        try check("enqueue for later", enqueueForLater(kept), "202 queued")
        try check("show", state(of: kept), "\(kept) pending")
        try check("hold", edit(kept, "/hold"), "200 held")
        let release = try call("POST", "/v1/queue/release", #"{"ids":["\#(kept)","unknown"]}"#).object
        let released = (release["results"] as? [[String: Any]])?.map { $0["state"] as? String ?? "none" }
        check("release", released, ["pending", "none"])
        try check("ids", call("GET", "/v1/ids?prefix=\(kept)").object["ids"] as? [String], [kept])
        try check("wait", state(of: sent, "?wait=50"), "\(sent) delivered")
        result.states[sent] = "delivered"
        try finish(kept, round)
        try check("list", listed(), result.states)
    }

    /// Enqueues a request that is sent a day later, and returns the status and the state in the response.
    func enqueueForLater(_ id: String) throws -> String {
        let tomorrow = Date(timeIntervalSinceNow: 86_400).ISO8601Format()
        return try enqueue(id, #""queue":"always","not_before":"\#(tomorrow)""#)
    }

    private func enqueue(_ id: String, _ members: String) throws -> String {
        let target = #""id":"\#(id)","url":"\#(server)/\#(id)","tag":"client-\#(number)""#
        let (status, object) = try call(
            "POST",
            "/v1/requests",
            #"{\#(target),"method":"POST","body":"x",\#(members)}"#
        )
        check("id", object["id"] as? String, id)
        return "\(status) \(object["state"] as? String ?? "none")"
    }

    /// Drops the request, retries it so that it is sent now, or holds it.
    private func finish(_ id: String, _ round: Int) throws {
        switch round % 3 {
        case 0:
            try check("drop", edit(id, "", "DELETE"), "200 cancelled")
            try check("second drop", edit(id, "", "DELETE"), "409 none")
            result.states[id] = "cancelled"
        case 1:
            try check("retry", edit(id, "/retry"), "200 pending")
            try check("wait for the retry", state(of: id, "?wait=50"), "\(id) delivered")
            result.states[id] = "delivered"
        default:
            try check("second hold", edit(id, "/hold"), "200 held")
            result.states[id] = "held"
        }
    }

    private func edit(_ id: String, _ edit: String, _ method: String = "POST") throws -> String {
        let (status, object) = try call(method, "/v1/requests/\(id)\(edit)")
        return "\(status) \(object["state"] as? String ?? "none")"
    }

    /// Returns the id and the state of a request. Expects the server's response if it was delivered.
    private func state(of id: String, _ query: String = "") throws -> String {
        let (status, object) = try call("GET", "/v1/requests/\(id)\(query)")
        let entry = object["request"] as? [String: Any] ?? [:]
        let (found, state) = (entry["id"] as? String ?? "none", entry["state"] as? String ?? "none")
        check("show", status, 200)
        if state == "delivered" {
            let body = (object["response"] as? [String: Any])?["body_base64"] as? String
            check("response", body, Data("thanks".utf8).base64EncodedString())
        }
        return "\(found) \(state)"
    }

    /// Returns the states of the client's requests.
    private func listed() throws -> [String: String] {
        let list = try call("GET", "/v1/requests?limit=1000&tag=client-\(number)").object
        var states: [String: String] = [:]
        for entry in list["requests"] as? [[String: Any]] ?? [] {
            states[entry["id"] as? String ?? "none"] = entry["state"] as? String
        }
        return states
    }

    private func call(
        _ method: String,
        _ target: String,
        _ body: String = ""
    ) throws -> (status: Int, object: [String: Any]) {
        if !number.isMultiple(of: 2) { connection = try RawClient(path) }
        let length = body.isEmpty ? "" : "Content-Length: \(body.utf8.count)\r\n"
        let head = "\(method) \(target) HTTP/1.1\r\nHost: x\r\n\(length)\r\n"
        let response = try connection.request(head + body)
        return (response.status, try Command.json(response.body))
    }

    private func check<Value: Equatable>(_ call: String, _ value: Value, _ expected: Value) {
        guard value != expected else { return }
        result.mismatches.append("client \(number), \(call): \(value) instead of \(expected)")
    }
}

/// A client that follows the events of the queue until a request is enqueued, and the states of the requests according
/// to them.
private struct EventFollower: Sendable {
    private(set) var states: [String: String] = [:]
    /// The events that do not follow from the events before them.
    private(set) var mismatches: [String] = []

    /// Blocks until the request with the id `last` is enqueued.
    ///
    /// - Parameter onConnection: Called when the response has begun. No later event is missed.
    init(_ path: String, until last: String, _ onConnection: () -> Void) throws {
        let client = try RawClient(path)
        try client.send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        guard try client.receiveMore() else { throw RawClientError.closedEarly(0) }
        onConnection()
        var rest = client.takeReceived()
        while true {
            // The lengths of the chunks are on separate lines, because each chunk contains whole events.
            let lines = rest.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            rest = String(lines.last ?? "")
            for line in lines.dropLast() where line.hasPrefix("data: ") {
                try apply(Command.json(String(line.dropFirst(6))))
            }
            if states[last] != nil { return }
            guard try client.receiveMore() else { throw RawClientError.closedEarly(states.count) }
            rest += client.takeReceived()
        }
    }

    private mutating func apply(_ event: [String: Any]) {
        guard let id = event["request"] as? String else { return }
        if states[id] != event["old_state"] as? String { mismatches.append("\(event)") }
        states[id] = event["state"] as? String
    }
}

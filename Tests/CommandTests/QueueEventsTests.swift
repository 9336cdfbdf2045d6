internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// `netwatch queue events`.
@Suite(.timeLimit(.minutes(5))) struct QueueEventsTests {
    @Test func `every change is one line, as JSON or as text`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let json = try await service.events("--format", "json", "-n", "3")
        let text = try await service.events("-n", "3")
        try await service.keep("http://127.0.0.1:1/", "--id", "a", "--lane", "l")
        _ = try await service.run("queue", "hold", "a")
        _ = try await service.run("queue", "cancel", "a")
        #expect(try await json.end() == .exited(0))
        #expect(try await text.end() == .exited(0))
        let events = try json.output.values.map(Command.json)
        #expect(events.map { $0["event"] as? String } == ["enqueued", "held", "cancelled"])
        #expect(events.allSatisfy { $0["v"] as? Int == 1 && $0["request"] as? String == "a" })
        #expect(events.map { $0["hold_reason"] as? String } == [nil, "user", nil])
        let words = text.output.values.map {
            $0.components(separatedBy: "  ").dropFirst().prefix(3).joined(separator: " ")
        }
        #expect(words == ["enqueued a 127.0.0.1 l", "held a 127.0.0.1 l", "cancelled a 127.0.0.1 l"])
        #expect(text.output.values[1].hasSuffix("  user"))
    }

    @Test func `filters select events, and an id continues after an event`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let dropped = try await service.events("--state", "cancelled", "--format", "json", "-n", "1")
        let first = try await service.events("--format", "json", "-n", "1")
        let tagged = try await service.events("--tag", "t", "--format", "json", "-n", "1")
        try await service.keep("http://127.0.0.1:1/", "--id", "a")
        try await service.keep("http://127.0.0.1:1/", "--id", "b", "--tag", "t")
        #expect(try await tagged.end() == .exited(0))
        let event = try Command.json(try #require(tagged.output.values.first))
        #expect(event["request"] as? String == "b" && event["tag"] as? String == "t")
        _ = try await service.run("queue", "cancel", "b")
        #expect(try await first.end() == .exited(0))
        #expect(try await dropped.end() == .exited(0))
        #expect(try Command.json(dropped.output.values[0])["request"] as? String == "b")
        let id = try #require(try Command.json(first.output.values[0])["id"] as? String)
        let rest = try await service.run("queue", "events", "--format", "json", "-n", "2", "--after", id)
        #expect(rest.ending == .exited(0))
        #expect(
            try rest.output.map { try Command.json($0)["event"] as? String } == ["enqueued", "cancelled"]
        )
        let reset = try await service.events("-n", "1", "--after", "old-1")
        try await reset.output.wait { $0.count == 1 }
        _ = try await service.run("queue", "hold", "a")
        #expect(try await reset.end() == .exited(0))
        #expect(reset.output.values.count == 2, "a reset is not one of the events that `-n` counts")
        #expect(reset.output.values[0].contains("  reset  ") && reset.output.values[1].contains("  held  "))
    }

    @Test func `the exit status tells why the events ended`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let watching = try await service.events()
        let malformed = try await service.run("queue", "events", "--after", "x")
        #expect(malformed.ending == .exited(64) && malformed.errors.first?.contains("`after` is `x`") == true)
        let empty = try await service.run("queue", "events", "--after", "")
        #expect(empty.ending == .exited(64), "\(empty.errors)")
        #expect(empty.errors.contains { $0.contains("`--after` must not be empty") })
        try await service.stop()
        #expect(try await watching.end() == .exited(2))
        #expect(watching.errors.values.contains { $0.contains("ended the stream of events") })
        #expect(watching.errors.values.contains { $0.contains("if the service has restarted") })
        let absent = try await service.run("queue", "events")
        #expect(absent.ending == .exited(69))
    }
}

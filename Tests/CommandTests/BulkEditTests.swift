internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// `--all` with more requests than a command line can list.
@Suite(.serialized, .timeLimit(.minutes(10))) struct BulkEditTests {
    /// The number of requests: more than 64 pages of the control API, which have at most 1,000 requests each.
    private static let count = 66_000

    private let directory = try! ScratchDirectory()

    /// Writes an export of requests to one host.
    private func export(_ numbers: Range<Int>) throws -> String {
        let now = Int(Date().timeIntervalSince1970 * 1000)
        var lines = [#"{"v":1,"type":"netwatch-queue-export","created":\#(now),"dead":true}"#]
        let rest = """
            "dependencies":[],"atMostOnce":false,"attempts":0,"created":\(now),"deferrals":0,"expires":\(now + 604_800_000),\
            "fifo":false,"headers":[],"lane":"","life":604800000,"method":"GET","priority":5,"state":"pending",\
            "url":"http://127.0.0.1:1/"
            """
        for number in numbers { lines.append(#"{"request":{"id":"many-\#(number)",\#(rest)}}"#) }
        let path = directory.file("export")
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: path))
        let digest = try shell("sha256sum \(path)").prefix(64)
        let end = #"{"end":{"requests":\#(numbers.count),"sha256":"\#(digest)"}}"#
        try shell("echo '\(end)' >>\(path)")
        return path
    }

    /// Starts a paused service that holds all `count` requests.
    private func filled() async throws -> RunningService {
        // The first start creates the state directory.
        try await RunningService(in: directory).stop()
        let part = 6000
        for first in stride(from: 0, to: Self.count, by: part) {
            let export = try export(first..<first + part)
            let imported = try await Command.run(
                "queue",
                "import",
                export,
                "--state-dir",
                directory.file("state")
            )
            #expect(imported.ending == .exited(0), "\(imported.errors)")
        }
        let service = try await RunningService(in: directory)
        try await service.pause()
        return service
    }

    private func counts(_ service: RunningService) async throws -> [String: Int] {
        let statistics = try await Command.json(service.curl("/v1/queue/stats"))
        return try #require(statistics["counts"] as? [String: Int]).filter { $0.value > 0 }
    }

    @Test func `66,000 requests are edited in one transaction, even if the service is killed`() async throws {
        let service = try await killed(editing: try await filled())
        for (action, state, words) in [
            ("release", "pending", "released"), ("hold", "held", "held"), ("retry", "pending", "retried"),
            ("cancel", "cancelled", "cancelled"),
        ] {
            let edited = try await service.run("queue", action, "--all", "--yes", "--host", "127.0.0.1")
            #expect(edited.ending == .exited(0), "\(action): \(edited.errors)")
            #expect(edited.errors == ["\(words) \(Self.count) requests"] && edited.output.isEmpty)
            let counts = try await counts(service)
            // The periodic cleanup may have started to delete the cancelled requests.
            #expect(counts.keys.sorted() == [state], "\(counts)")
            if state != "cancelled" { #expect(counts[state] == Self.count) }
        }
    }

    /// Kills the service during each of three edits and restarts it.
    ///
    /// - Returns: The last service, in which all requests are held.
    private func killed(editing service: RunningService) async throws -> RunningService {
        var (service, state) = (service, "pending")
        for delay in [0.05, 0.2, 0.6] {
            let action = state == "pending" ? "hold" : "release"
            let editing = try Command.start(["queue", action, "--all", "--yes", "--socket", service.socket])
            // The kill may come at any point of the edit.
            try await Task.sleep(for: .seconds(delay))
            try await service.kill()
            let outcome = try await editing.outcome()
            service = try await RunningService(in: directory)
            let counts = try await counts(service)
            #expect(counts.count == 1 && counts.values.first == Self.count, "after \(delay) s: \(counts)")
            let found = try #require(counts.keys.first)
            if outcome.ending == .exited(0) {
                #expect(found != state, "a response arrived, but nothing was done")
            }
            state = found
        }
        if state == "pending" {
            #expect(try await service.run("queue", "hold", "--all", "--yes").ending == .exited(0))
        }
        return service
    }

    @Test func `a dry run counts the matching requests`() async throws {
        let queue = try await QueueFixture(.service, count: 3)
        let service = try #require(queue.service)
        let answer = try await Command.json(
            service.curl(#"/v1/queue/cancel -d '{"filter":{"host":"127.0.0.1"},"dry_run":true}'"#)
        )
        #expect(answer["done"] as? Int == 3 && answer["refused"] as? Int == 0)
        #expect(Set(try await queue.states().values) == ["pending"])
        let other = try await Command.json(service.curl(#"/v1/queue/cancel -d '{"filter":{"lane":"none"}}'"#))
        #expect(other["done"] as? Int == 0)
        #expect(Set(try await queue.states().values) == ["pending"])
    }
}

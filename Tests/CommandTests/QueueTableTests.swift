internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The width of the `netwatch queue list` table.
@Suite(.timeLimit(.minutes(5))) struct QueueTableTests {
    private let url = "http://127.0.0.1:1/" + String(repeating: "a", count: 15_000)

    private func fixture() async throws -> QueueFixture {
        let queue = try await QueueFixture(.service, count: 1)
        try await queue.service?.keep(url, "--id", "long")
        return queue
    }

    @Test func `a long URL does not widen every row, and is complete in JSON`() async throws {
        let queue = try await fixture()
        let list = try await queue.run("list").output
        #expect(list.count == 2 && list.allSatisfy { $0.count < 160 }, "\(list)")
        #expect(list.last?.contains("aaa…  0  paused") == true, "\(list)")
        let json = try await queue.run("list", "--format", "json").output.map(Command.json)
        #expect(json.last?["url"] as? String == url)
        #expect(try await queue.run("show", "long").output.contains("request   GET \(url)"))
    }

    @Test(arguments: [72, 100, 200]) func `on a terminal no row is wider than the window`(columns: Int)
        async throws
    {
        let queue = try await fixture()
        let command =
            "stty cols \(columns); \(Command.path) queue list --socket \(queue.directory.file("socket"))"
        let rows = try shell("script -qec '\(command)' /dev/null </dev/null").split(
            whereSeparator: \.isNewline
        )
        #expect(rows.count == 4 && rows.first?.hasPrefix("ID ") == true, "\(rows)")
        #expect(rows.allSatisfy { $0.count <= columns }, "\(rows)")
        #expect(rows.contains { $0.hasPrefix("long ") && $0.contains("a…  0      paused") }, "\(rows)")
    }
}

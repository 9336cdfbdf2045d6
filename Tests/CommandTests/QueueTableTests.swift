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

    /// Returns the output of a `queue` command on a terminal.
    private func rows(of command: String, in queue: QueueFixture, columns: Int) throws -> [Substring] {
        let socket = queue.directory.file("socket")
        let command = "stty cols \(columns); \(Command.path) queue \(command) --socket \(socket)"
        return try shell("NO_COLOR=1 script -qec '\(command)' /dev/null </dev/null")
            .split(whereSeparator: \.isNewline)
    }

    @Test(arguments: ["stats", "show req-0"])
    func `on a terminal a long text is continued on the next line`(command: String) async throws {
        let queue = try await QueueFixture(.service, count: 1)
        try await queue.service?.keep("http://127.0.0.1:1/", "--id", "tagged", "--tag", "x")
        _ = try await queue.run("cancel", "tagged")
        let rows = try rows(of: command, in: queue, columns: 60)
        #expect(rows.allSatisfy { $0.count <= 60 }, "\(rows)")
        #expect(rows.contains { $0.hasPrefix("          ") }, "\(rows)")
    }

    @Test func `a long URL does not widen every row, and is complete in JSON`() async throws {
        let queue = try await fixture()
        let list = try await queue.run("list").output
        #expect(list.count == 2 && list.allSatisfy { $0.count < 160 }, "\(list)")
        #expect(list.last?.contains("  127.0.0.1:1/…aaa") == true, "\(list)")
        let json = try await queue.run("list", "--format", "json").output.map(Command.json)
        #expect(json.last?["url"] as? String == url)
        #expect(try await queue.run("show", "long").output.contains("request   GET \(url)"))
    }

    @Test(arguments: [72, 100, 200]) func `on a terminal no row is wider than the window`(columns: Int)
        async throws
    {
        let rows = try rows(of: "list", in: try await fixture(), columns: columns)
        #expect(rows.count == 4 && rows.first?.hasPrefix("ID ") == true, "\(rows)")
        #expect(rows.allSatisfy { $0.count <= columns }, "\(rows)")
        let long = rows.first { $0.hasPrefix("long ") } ?? ""
        #expect(long.contains("1/…aa") && long.contains("a  0            paused"), "\(rows)")
    }
}

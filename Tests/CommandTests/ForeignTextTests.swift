internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// What one user reads of the texts and the requests of other users.
@Suite(.timeLimit(.minutes(5))) struct ForeignTextTests {
    private static func limited(in namespace: NetworkNamespace? = nil) throws -> ScriptedServer {
        try ScriptedServer(in: namespace) { _ in
            .respond(status: 429, headers: [.init("Retry-After", "3600")])
        }
    }

    private func expectImport(of export: [String]) async throws {
        let (source, target) = (try ScratchDirectory(), try ScratchDirectory())
        let file = URL(fileURLWithPath: source.file("export"))
        try Data(export.map { $0 + "\n" }.joined().utf8).write(to: file)
        let imported = try await Command.run("queue", "import", file.path, "--state-dir", target.path)
        #expect(imported.errors == ["imported 1 request"])
    }

    @Test func `a label reaches a terminal and the log only with escapes, and JSON has it unchanged`()
        async throws
    {
        let server = try Self.limited()
        let service = try await RunningService(in: try ScratchDirectory())
        let label = "l\u{202E}\u{200B}\u{2028}\u{9B}2J"
        let escaped = #"l\u{202E}\u{200B}\u{2028}\u{9B}2J"#
        _ = try await service.run("send", server.url, "-d", "x", "--id", "a", "--lane", label)
        var lines: [String] = []
        for command in [["show", "a"], ["stats"], ["list"], ["list", "--format", "json"], ["export"]] {
            let outcome = try await service.run(["queue"] + command, input: nil)
            lines += outcome.output + outcome.errors
            if command == ["export"] { try await expectImport(of: outcome.output) }
        }
        #expect(lines.count { $0.contains(escaped) } >= 2, "\(lines)")
        let entry = try #require(try await service.queue().first)
        #expect((entry["lane"] as? String)?.unicodeScalars.elementsEqual(label.unicodeScalars) == true)
        try await service.process.errors.wait { $0.contains { $0.contains("the lane `\(escaped)`") } }
        lines += service.process.errors.values
        #expect(lines.filter { !$0.unicodeScalars.allSatisfy(\.isPrintable) } == [])
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `the page names the origins of closed lanes to a user with full access, and to no one over TCP`()
        async throws
    {
        let namespace = try NetworkNamespace()
        let server = try Self.limited(in: namespace)
        let service = try await RunningService(
            in: try ScratchDirectory(),
            namespace: namespace,
            options: ["--web", "127.0.0.1:9317"]
        )
        _ = try await service.run("send", server.url, "-d", "x", "--id", "a")
        let page = try await service.curl("/")
        #expect(page.contains("<li>\(server.url): lane closed by Retry-After of HTTP 429"), "\(page)")
        let request = try Subprocess("/usr/bin/curl", ["-sS", "http://127.0.0.1:9317/"], in: namespace)
        let other = try await request.outcome().output.joined(separator: "\n")
        #expect(other.contains("<p>1 closed lane; next attempt ") && !other.contains(server.url), "\(other)")
    }
}

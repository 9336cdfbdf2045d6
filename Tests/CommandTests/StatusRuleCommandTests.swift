internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// What a status means for a queued request: the choice of its caller, refusals that last for a moment, and credentials
/// that a server rejects for a moment.
@Suite(.timeLimit(.minutes(10))) struct StatusRuleCommandTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    private func service(_ configuration: String = "") async throws -> RunningService {
        let file = try directory.write(Array(configuration.utf8), to: "netwatch.toml")
        return try await RunningService(
            in: directory,
            environment: RunningService.quickRetries,
            options: ["--config", file]
        )
    }

    @Test func `the statuses of a request and of the configuration decide whether it is retried`()
        async throws
    {
        let server = try ScriptedServer {
            .respond(status: [404, 403].dropFirst($0.number - 1).first ?? 503)
        }
        let service = try await service(
            """
            [queue]
            retry-statuses = "403"
            host-dead-statuses = { "127.0.0.1" = "500-599" }
            """
        )
        let sent = try await service.run(
            "send",
            server.url,
            "-d",
            "x",
            "--retry-statuses",
            "404",
            "--wait",
            "--id",
            "a"
        )
        #expect(sent.ending == .exited(1) && sent.errors.contains("dead: HTTP 503"), "\(sent.errors)")
        let details = try await service.details(of: "a")
        let attempts = try #require(details["attempts"] as? [[String: Any]])
        #expect(attempts.map { $0["status"] as? Int } == [404, 403, 503])
        let options = try #require(details["options"] as? [String: Any])
        #expect(options["retry_statuses"] as? String == "404" && options["dead_statuses"] == nil)
        #expect(try await service.run("queue", "show", "a").output.contains("statuses  retried after 404"))
    }

    @Test(arguments: [
        (["--retry-statuses", "404;500"], "`404;500` is not a list of statuses; accepted: "),
        (["--dead-statuses", "99"], "`99` is not a list of statuses; accepted: "),
        (
            ["--retry-statuses", "4xx", "--dead-statuses", "404"],
            "both the retry statuses `400-499` and the dead"
        ),
        (
            ["--queue", "never", "--dead-statuses", "404"],
            "`--queue never` cannot be combined with `--dead-statuses`"
        ),
    ])
    func `statuses that are not accepted are refused, and nothing is sent`(options: [String], words: String)
        async throws
    {
        let sent = try await Command.start(
            ["send", "http://127.0.0.1:1/", "--socket", directory.file("none")] + options
        ).outcome()
        #expect(sent.ending == .exited(64) && sent.errors.joined().contains(words), "\(sent.errors)")
    }
}

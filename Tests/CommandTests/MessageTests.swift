internal import NetwatchTestSupport
internal import Testing

/// What the commands tell a person about a request: what is expected, why it waits, and what was wrong.
@Suite(.timeLimit(.minutes(5))) struct MessageTests {
    @Test func `queue show prints the expected response, and only if it is not the default`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let text = "status=201,header=X-Box"
        try await service.keep("http://127.0.0.1:1/", "--id", "expects", "--expect", text)
        try await service.keep("http://127.0.0.1:1/", "--id", "default")
        #expect(try await service.details(of: "expects")["expect"] as? String == text)
        #expect(try await service.run("queue", "show", "expects").output.contains("expects   \(text)"))
        #expect(try await service.details(of: "default")["expect"] == nil)
        let lines = try await service.run("queue", "show", "default").output
        #expect(!lines.contains { $0.hasPrefix("expects") }, "\(lines)")
    }

    @Test func `a hold is explained where it is printed`() async throws {
        let server = try ScriptedServer { _ in .close }
        let service = try await RunningService(in: try ScratchDirectory())
        _ = try await service.run("send", server.url, "-d", "x", "--at-most-once", "--id", "once")
        let text = "the server may have executed it"
        let shown = try await service.run("queue", "show", "once").output
        #expect(shown.contains { $0.hasPrefix("state     held: ambiguous: ") }, "\(shown)")
        #expect(
            shown.contains { $0.hasPrefix("held      \(text)") && $0.contains("queue retry") },
            "\(shown)"
        )
        let listed = try await service.run("queue", "list").errors
        #expect(listed.contains { $0.hasPrefix("held: ambiguous: \(text)") }, "\(listed)")
    }

    @Test func `a repeated id with other options is refused, and the message names them`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let first = ["send", "http://127.0.0.1:1/", "-d", "x", "--id", "order-7", "--queue", "always"]
        #expect(try await service.run(first).ending == .exited(0))
        let other = try await service.run(first + ["--priority", "1", "--expect", "status=201"])
        #expect(other.ending == .exited(64), "\(other.errors)")
        #expect(
            other.errors.first?.hasSuffix("different: priority, expectation") == true,
            "\(other.errors)"
        )
        // A time to live is relative to the call, so it is not compared.
        #expect(try await service.run(first + ["--ttl", "1h"]).ending == .exited(0))
    }

    @Test(arguments: [
        ("header=X-Box", "does not meet the rule `header=X-Box`"),
        ("status=200,body=OK", "does not meet the rule `body=OK`"), ("status=201", "expected status=201"),
        ("type=text/plain", "expected status=200-299,type=text/plain"),
    ])
    func `a direct request names the expectation that the response does not meet`(
        text: String,
        reason: String
    ) async throws {
        let server = try ScriptedServer { _ in .respond("<html>") }
        let sent = try await Command.run("send", server.url, "--queue", "never", "--expect", text)
        #expect(sent.ending == .exited(1))
        #expect(sent.errors == ["dead: HTTP 200, \(reason)"])
    }

    @Test(arguments: [
        ("json=/a=1,2", "the part `2` of `json=/a=1,2`"), ("status=2xx,", "an empty part of `status=2xx,`"),
        ("header=A,,body=x", "an empty part of `header=A,,body=x`"),
        ("status=2xx, 204", "the part ` 204` of `status=2xx, 204`"),
    ])
    func `a misplaced comma in --expect is named, with the way to write one in a value`(
        text: String,
        part: String
    ) async throws {
        for queue in ["auto", "never"] {
            let sent = try await Command.run(
                "send",
                "http://127.0.0.1:1/",
                "--queue",
                queue,
                "--expect",
                text
            )
            #expect(sent.ending == .exited(64))
            #expect(
                sent.errors.first?.hasPrefix("error: `--expect`: \(part) is not") == true,
                "\(sent.errors)"
            )
            #expect(sent.errors.first?.hasSuffix(#"a comma in a value is written `\,`"#) == true)
        }
    }

    @Test(arguments: [
        (["http://127.0.0.1/", "--priority", "10"], "the priority is 10; it must be 0 to 9"),
        (["http://127.0.0.1/", "--ttl", "367d"], "`--ttl`: `367d` is not a duration from 1ms to 366d"),
        (["ftp://127.0.0.1/"], "http or https"),
        (["http://127.0.0.1/", "--lane", ""], "`--lane` must not be empty"),
        (["http://127.0.0.1/", "-H", "Authorization: x"], "`Authorization` is refused"),
    ])
    func `wrong values are wrong arguments even if no service is running`(
        arguments: [String],
        words: String
    ) async throws {
        let socket = try ScratchDirectory().file("socket")
        let sent = try await Command.start(["send"] + arguments + ["--socket", socket]).outcome()
        #expect(sent.ending == .exited(64), "\(sent.errors)")
        #expect(sent.errors.first?.contains(words) == true, "\(sent.errors)")
        let valid = try await Command.run("send", "http://127.0.0.1/", "--socket", socket)
        #expect(valid.ending == .exited(69))
    }

    @Test(arguments: [["help", "foo"], ["help", "queue", "lst"], ["help", "host", "list"]])
    func `help for an unknown command is a wrong argument`(arguments: [String]) async throws {
        let result = try await Command.start(arguments).outcome()
        #expect(result.ending == .exited(64) && result.output.isEmpty)
        #expect(result.errors.first == "error: unknown command `\(arguments.last!)`")
    }

    @Test(arguments: [["help"], ["help", "queue"], ["help", "queue", "list"]])
    func `help for a command is printed`(arguments: [String]) async throws {
        let result = try await Command.start(arguments).outcome()
        #expect(result.ending == .exited(0) && !result.output.isEmpty && result.errors.isEmpty)
    }
}

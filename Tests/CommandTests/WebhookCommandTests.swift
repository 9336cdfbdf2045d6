internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// `netwatch send --tag` and `--on-done`, with the requests that a server receives.
@Suite(.timeLimit(.minutes(5))) struct WebhookCommandTests {
    @Test func `a server receives the outcome of a request as JSON, and no secret of it`() async throws {
        let server = try ScriptedServer { $0.target == "/orders" ? .respond("secret answer") : .respond("") }
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run(
            ["send", "\(server.url)/orders", "-d", "hush-hush", "-H", "X-Name: hush-hush"]
                + ["--id", "order-1", "--tag", "orders", "--on-done", "\(server.url)/ended"]
        )
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        let webhook = await server.requests(atLeast: 2)[1]
        #expect(webhook.method == "POST" && webhook.target == "/ended")
        #expect(webhook.values(of: "Content-Type") == ["application/json"])
        let key = try #require(webhook.values(of: "Idempotency-Key").first)
        let text = String(decoding: webhook.body, as: UTF8.self)
        let outcome = try Command.json(text)
        #expect(outcome["id"] as? String == "order-1" && outcome["tag"] as? String == "orders")
        #expect(outcome["event"] as? String == "delivered" && outcome["state"] as? String == "delivered")
        #expect(outcome["status"] as? Int == 200 && outcome["attempts"] as? Int == 1)
        #expect(Set(outcome.keys) == ["v", "id", "tag", "event", "state", "status", "attempts", "finished"])
        #expect(!text.contains("hush") && !text.contains("secret"))
        let shown = try await service.run("queue", "show", "order-1")
        #expect(shown.output.contains("tag       orders"), "\(shown.output)")
        #expect(
            shown.output.contains("on done   POST \(server.url)/ended, request \(key)"),
            "\(shown.output)"
        )
        #expect(try await service.details(of: "order-1")["webhook"] as? String == key)
        let hook = try await service.run("queue", "show", key)
        #expect(hook.output.contains("reports   the end of order-1"), "\(hook.output)")
        // Only the directory of a program contains requests that wait for its handlers.
        let row = "finished    1 request with the tag orders waits for a program that uses the library"
        let statistics = try await service.run("queue", "stats")
        #expect(!statistics.output.contains(row))
        let directory = ["--state-dir", service.stateDirectory]
        #expect(try await service.run(["queue", "stats"] + directory).output.contains(row))
        #expect(try await service.run("queue", "export").errors == [])
        #expect(try await service.run(["queue", "export"] + directory).errors.count == 1)
    }

    @Test func `a tag selects requests to list and to drop`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for (id, tag) in [("a", "x"), ("b", "y"), ("c", "x")] {
            try await service.keep("http://127.0.0.1:1/", "--id", id, "--tag", tag)
        }
        let listed = try await service.run("queue", "list", "--tag", "x", "--format", "json")
        #expect(try listed.output.map { try Command.json($0)["id"] as? String } == ["a", "c"])
        let text = try await service.run("queue", "list", "--tag", "x")
        #expect(
            text.output.count == 2
                && text.errors == ["whole queue: 3 pending, 0 inflight, 0 held, 0 delivered, 0 dead"]
        )
        let dropped = try await service.run("queue", "cancel", "--all", "--yes", "--tag", "x")
        #expect(dropped.errors == ["cancelled 2 requests"], "\(dropped.errors)")
        #expect(
            try await service.queue().map { $0["state"] as? String } == ["pending", "cancelled", "cancelled"]
        )
        let exported = try await service.run("queue", "export")
        #expect(exported.output.contains { $0.contains(#""tag":"y""#) })
    }

    @Test(arguments: [
        (["send", "http://a.example/", "--on-done-credential", "c"], "requires `--on-done`"),
        (["send", "http://a.example/", "--queue", "never", "--tag", "t"], "`--tag`"),
        (["send", "http://a.example/", "--queue", "never", "--on-done", "http://b.example/"], "`--on-done`"),
        (["queue", "cancel", "a", "--tag", "t"], "require `--all`"),
        (["queue", "list", "--tag", ""], "`--tag` must not be empty"),
    ])
    func `options that do not fit are refused`(arguments: [String], message: String) async throws {
        let result = try await Command.start(arguments).outcome()
        #expect(result.ending == .exited(64))
        #expect(result.errors.contains { $0.contains(message) }, "\(result.errors)")
    }
}

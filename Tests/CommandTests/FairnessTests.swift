internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The effect of one stalled server on requests to other servers, with the built service.
@Suite(.timeLimit(.minutes(5))) struct FairnessTests {
    /// Starts a server that accepts requests without responding, and a service with 32 requests for it in four lanes.
    private func occupied() async throws -> (ScriptedServer, RunningService) {
        let tarpit = try ScriptedServer { _ in .stall(then: .close) }
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for number in 0..<32 {
            try await service.keep(
                tarpit.url,
                "-d",
                "x",
                "--lane",
                "l\(number % 4)",
                "--id",
                "slow-\(number)"
            )
        }
        #expect(try await service.run("queue", "resume").ending == .exited(0))
        _ = await tarpit.requests(atLeast: 8)
        return (tarpit, service)
    }

    @Test func `32 stalled requests in four lanes do not delay another server`() async throws {
        let (tarpit, service) = try await occupied()
        let other = try ScriptedServer { _ in .respond("thanks") }
        let sent = try await service.run("send", other.url, "-d", "x")
        #expect(sent.ending == .exited(0) && sent.errors == ["delivered: HTTP 200"])
        #expect(tarpit.requests.count == 8, "no request has ended, and no other one was started")
    }

    @Test func `a request reports that it waits for a slot, and send returns`() async throws {
        let (tarpit, service) = try await occupied()
        let sent = try await service.run("send", tarpit.url, "-d", "x", "--id", "late")
        #expect(sent.errors.first?.contains("no free slot") == true, "\(sent.errors)")
        let shown = try await service.run("queue", "show", "late").output
        #expect(shown.contains { $0.contains("pending: no free slot") }, "\(shown)")
        let late = try #require(try await service.queue().first { $0["id"] as? String == "late" })
        #expect(late["reason"] as? String == "no free slot")
        #expect(tarpit.requests.count == 8)
    }

    @Test func `a lane closed by Retry-After shows until when and why`() async throws {
        let header = ScriptedServer.Header("Retry-After", "3600")
        let server = try ScriptedServer { _ in .respond(status: 429, headers: [header]) }
        let service = try await RunningService(in: try ScratchDirectory())
        _ = try await service.run("send", server.url, "-d", "x", "--id", "a")
        let reason = "lane closed by Retry-After of HTTP 429"
        let shown = try await service.run("queue", "show", "a").output
        #expect(
            shown.contains { $0.contains(reason) } && shown.contains { $0.hasPrefix("closed ") },
            "\(shown)"
        )
        let list = try await service.run("queue", "list").output
        let row = try #require(list.first)
        #expect(row.hasSuffix("  \(reason)") && row.contains("  in "), "\(list)")
        let stats = try await service.run("queue", "stats").output
        #expect(stats.contains { $0.hasPrefix("closed ") && $0.hasSuffix(reason) }, "\(stats)")
        let entry = try #require(try await service.queue().first)
        let closure = try #require(entry["lane_closure"] as? [String: Any])
        #expect(closure["status"] as? Int == 429 && closure["until"] is String)
    }
}

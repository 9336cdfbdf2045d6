internal import Foundation
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

/// The outcome of a request for each response or failure, with the built command and service.
@Suite(.serialized, .timeLimit(.minutes(5))) struct AttemptResultTests {
    private static let strange: [(bytes: [UInt8], words: String)] = [
        (Array("SSH-2.0-OpenSSH_9.2p1\r\n".utf8), #""SSH-2.0-OpenSSH_9.2p1\r\n""#),
        (Array("220 mail.example ESMTP\r\n".utf8), #""220 mail.example ESMTP\r\n""#),
        ([21, 3, 1, 0, 2, 2, 40], #""\x15\x03\x01\x00\x02\x02(""#),
        (Array("HTTP/3.9 200 OK\r\n\r\n".utf8), "Unsupported HTTP version (3.9)"),
        (Array("HTTP/1.1 2x0 OK\r\n\r\n".utf8), "Unsupported response code"),
    ]

    @Test func `a response that is not HTTP is not a permanent failure`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        for (index, (bytes, words)) in Self.strange.enumerated() {
            let isMended = Atomic(false)
            let server = try ScriptedServer { _ in
                isMended.load(ordering: .relaxed) ? .respond("at last") : .send(bytes, then: .close)
            }
            let id = "again-\(index)"
            let sent = try await service.run("send", server.url, "-d", "x", "--id", id)
            #expect(sent.ending == .exited(0), "\(sent.errors)")
            #expect(
                sent.errors.first?.hasPrefix("queued: the response is not HTTP: ") == true,
                "\(sent.errors)"
            )
            let row = try await service.request(id)
            #expect((row["last_error"] as? String)?.contains(words) == true, "\(row)")
            #expect(row["finished"] == nil, "\(row)")
            isMended.store(true, ordering: .relaxed)
            #expect(try await service.run("queue", "flush").ending == .exited(0))
            let end = try await Command.json(service.curl("/v1/requests/\(id)?wait=60"))
            #expect((end["request"] as? [String: Any])?["state"] as? String == "delivered")
        }
    }

    @Test func `a server without TLS is not a permanent failure for https`() async throws {
        let server = try ScriptedServer { _ in .close }
        let service = try await RunningService(in: try ScratchDirectory())
        let url = server.url.replacing("http:", with: "https:")
        let sent = try await service.run("send", url, "-d", "x", "--id", "a")
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        // The service may have begun another attempt by now.
        let row = try await service.request("a")
        #expect(row["last_error"] is String && row["finished"] == nil, "\(row)")
    }

    // MARK: Timeouts

    @Test func `after a response timeout, the next attempt has twice the time`()
        async throws
    {
        let server = try ScriptedServer { _ in .stall(then: .respond("done")) }
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run(
            "send",
            server.url,
            "-d",
            "x",
            "--response-timeout",
            "6s",
            "--id",
            "slow",
            "--lane",
            "a",
            "--fifo"
        )
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        #expect(sent.errors == ["queued: no response within 6.0 seconds of the request"], "\(sent.errors)")
        let details = try await service.details(of: "slow")
        #expect(details["response_timeout_seconds"] as? Double == 12)
        let attempts = try #require(details["attempts"] as? [[String: Any]])
        #expect(attempts.map { $0["curl_code"] as? Int } == [28])
        // Checks only this row: whether there is a row `busy` depends on whether the six seconds are over.
        let shown = try await service.run("queue", "show", "slow").output
        #expect(shown.contains { $0.hasPrefix("timeouts") && $0.contains("response 12.0 s") }, "\(shown)")
        await server.requests(atLeast: 2)
        server.release()
        let end = try await Command.json(service.curl("/v1/requests/slow?wait=60"))
        #expect((end["request"] as? [String: Any])?["state"] as? String == "delivered")
        #expect(server.requests.count == 2)
    }

    @Test func `after a timeout, the request waits while the server may still process it`()
        async throws
    {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run(
            "send",
            server.url,
            "-d",
            "x",
            "--max-time",
            "30s",
            "--response-timeout",
            "20s",
            "--queue",
            "always",
            "--id",
            "a"
        )
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        await server.requests(atLeast: 1)
        try await service.until {
            try await !(service.details(of: "a")["attempts"] as? [Any] ?? []).isEmpty
        }
        let shown = try await service.run("queue", "show", "a").output
        #expect(shown.contains { $0.hasPrefix("busy") && $0.contains("may still be processing") }, "\(shown)")
        #expect(
            shown.contains { $0.hasPrefix("timeouts") && $0.contains("response 40.0 s, total 1 min") },
            "\(shown)"
        )
        // A flush does not send the request again either.
        _ = try await service.run("queue", "flush")
        #expect(try await service.request("a")["state"] as? String == "pending")
        #expect(server.requests.count == 1)
    }

    @Test func `a direct request accepts the same timeouts`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        for (options, words) in [
            (["--response-timeout", "100ms"], "hint: `--response-timeout` is 100ms"),
            (["--max-time", "10s"], "hint: `--max-time` is 10s"),
        ] {
            let sent = try await Command.start(["send", "--queue", "never", server.url, "-d", "x"] + options)
                .outcome()
            #expect(sent.ending == .exited(2) && sent.errors.joined().contains(words), "\(sent.errors)")
        }
        let port = try UnansweringPort()
        let url = "http://127.0.0.1:\(port.port)/"
        let sent = try await Command.run("send", "--queue", "never", url, "--connect-timeout", "100ms")
        #expect(
            sent.ending == .exited(2) && sent.errors.joined().contains("no connection within")
                && sent.errors.last == "hint: `--connect-timeout` is 100ms; accepted: up to 24h",
            "\(sent.errors)"
        )
    }

    @Test(arguments: ["--connect-timeout", "--response-timeout", "--max-time"])
    func `a timeout out of range is a wrong argument`(option: String) async throws {
        for value in ["0", "25h", "x", "5"] {
            let sent = try await Command.run("send", "http://127.0.0.1:1/", option, value)
            #expect(sent.ending == .exited(64) && sent.output.isEmpty, "\(option) \(value)")
        }
    }
}

/// Requests that are rejected before they are stored.
@Suite(.serialized, .timeLimit(.minutes(5))) struct EnqueueRefusalTests {
    @Test func `a repeated id with other options is refused, and the message names them`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let first = ["send", "http://127.0.0.1:1/", "-d", "x", "--id", "order-7", "--queue", "always"]
        #expect(try await service.run(first).ending == .exited(0))
        let other = try await service.run(first + ["--priority", "1", "--expect", "status=201"])
        #expect(other.ending == .exited(64), "\(other.errors)")
        #expect(
            other.errors.first?.contains("differs in: priority, expectation;") == true,
            "\(other.errors)"
        )
        // A time to live is relative to the call, so it is not compared.
        #expect(try await service.run(first + ["--ttl", "1h"]).ending == .exited(0))
    }
}

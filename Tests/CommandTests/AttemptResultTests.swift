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

    @Test func `a response that is not HTTP holds an at-most-once request`() async throws {
        let server = try ScriptedServer { _ in .send("SSH-2.0-x\r\n", then: .close) }
        let service = try await RunningService(in: try ScratchDirectory())
        _ = try await service.run("send", server.url, "-d", "x", "--at-most-once", "--id", "a")
        let row = try await service.request("a")
        #expect(row["state"] as? String == "held" && row["hold_reason"] as? String == "ambiguous")
        #expect((row["last_error"] as? String)?.contains(#""SSH-2.0-x\r\n""#) == true)
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

    @Test func `every 5xx except 501 and 505 is retried`() async throws {
        let service = try await RunningService(
            in: try ScratchDirectory(),
            environment: RunningService.quickRetries
        )
        let retried = [506, 508, 509, 510] + Array(525...530) + [598, 599, 600, 999]
        // All servers run until the end. Otherwise a server could get the port of an earlier one, whose lane is closed.
        let servers = try Dictionary(
            uniqueKeysWithValues: (retried + [501, 505, 418, 499]).map { status in
                (status, try ScriptedServer { _ in .respond(status: status) })
            }
        )
        for status in retried {
            let server = try #require(servers[status])
            let sent = try await service.run("send", server.url, "-d", "x")
            #expect(sent.ending == .exited(0), "\(status)")
            #expect(sent.errors == ["queued: HTTP \(status)"])
        }
        for status in [501, 505, 418, 499] {
            let server = try #require(servers[status])
            let sent = try await service.run("send", server.url, "-d", "x")
            #expect(sent.ending == .exited(1))
            #expect(sent.errors.first == "dead: HTTP \(status)", "\(sent.errors)")
        }
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

    @Test func `the response timeout defaults to five minutes and survives a restart`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        try await service.pause()
        try await service.keep("http://127.0.0.1:1/", "--id", "usual")
        try await service.keep(
            "http://127.0.0.1:1/",
            "--id",
            "own",
            "--connect-timeout",
            "3s",
            "--response-timeout",
            "1h30m",
            "-m",
            "2h"
        )
        try await service.kill()
        let again = try await RunningService(in: directory)
        let (usual, own) = try await (again.details(of: "usual"), again.details(of: "own"))
        #expect(
            usual["connect_timeout_seconds"] as? Double == 15
                && usual["response_timeout_seconds"] as? Double == 300
        )
        #expect(usual["total_timeout_seconds"] == nil)
        #expect(
            own["connect_timeout_seconds"] as? Double == 3
                && own["response_timeout_seconds"] as? Double == 5400
        )
        #expect(own["total_timeout_seconds"] as? Double == 7200)
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
    @Test func `reserved headers and methods are rejected by name`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for name in [
            "Host", "Connection", "Upgrade", "TE", "Trailer", "Expect", "Keep-Alive", "Proxy-Connection",
            "Transfer-Encoding", "Content-Length",
        ] {
            let sent = try await service.run("send", "http://127.0.0.1:1/", "-d", "x", "-H", "\(name): x")
            #expect(sent.ending == .exited(64), "\(name)")
            #expect(sent.errors.first?.contains("`\(name)` is refused: ") == true, "\(sent.errors)")
            let key = try await service.curl(
                #"/v1/requests -d '{"url":"http://127.0.0.1:1/","method":"POST","idempotency":{"header":"\#(name)"}}'"#
            )
            #expect(key.contains("`\(name)` is refused: ") && key.contains("invalid_header"), "\(key)")
        }
        for method in ["CONNECT", "TRACE"] {
            let sent = try await service.run("send", "http://127.0.0.1:1/", "-X", method)
            #expect(sent.ending == .exited(64) && sent.errors.joined().contains(method), "\(sent.errors)")
        }
        let host = try await service.run("send", "http://*/")
        #expect(host.ending == .exited(64) && host.errors.joined().contains("`*`"), "\(host.errors)")
        #expect(try await service.queue().isEmpty)
    }

    @Test func `a duplicate JSON member is rejected`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let answer = try await service.curl(
            #"/v1/requests -d '{"url":"http://127.0.0.1:1/","url":"http://127.0.0.1:2/","queue":"always"}'"#
        )
        #expect(answer.contains("malformed_body") && answer.contains("`url` occurs twice"), "\(answer)")
        #expect(try await service.queue().isEmpty)
    }

    @Test func `a URL has at most 16 KiB, and the header fields 64 KiB`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let url = "http://127.0.0.1:1/"
        let path = String(repeating: "x", count: (16 << 10) - url.utf8.count)
        let value = String(repeating: "x", count: (64 << 10) - 3)
        for (arguments, isTaken) in [
            ([url + path], true), ([url + path + "x"], false), ([url, "-H", "X-A: \(value)"], true),
            ([url, "-H", "X-A: \(value)x"], false),
        ] {
            let sent = try await service.run(["send", "--queue", "always"] + arguments)
            #expect(sent.ending == .exited(isTaken ? 0 : 64), "\(sent.errors.map { $0.prefix(200) })")
            let limit = arguments.count == 1 ? "16384" : "65536"
            if !isTaken { #expect(sent.errors.joined().contains("at most \(limit) are accepted")) }
        }
        #expect(try await service.queue().count == 2)
    }

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

internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Requests that `netwatch send` sends, and its exit statuses.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SendCommandTests {
    private static func status(_ status: Int) -> ScriptedServer.Action {
        .respond(status: status, headers: [], body: Array("answer".utf8))
    }

    private static let unfinished =
        "the wait ended before the request was finished; the request stays in the queue"

    @Test func `the default method depends on the body`() async throws {
        let server = try ScriptedServer()
        let service = try await RunningService(in: try ScratchDirectory())
        for arguments in [
            [], ["-d", "x"], ["--json", "{}"], ["-T", "/proc/self/comm"], ["-d", "x", "-X", "PATCH"],
        ] {
            #expect(
                try await service.run(["send", server.url] + arguments).ending == .exited(0),
                "\(arguments)"
            )
        }
        #expect(server.requests.map(\.method) == ["GET", "POST", "POST", "PUT", "PATCH"])
    }

    @Test func `--json sets Content-Type and Accept unless given`() async throws {
        let server = try ScriptedServer()
        let service = try await RunningService(in: try ScratchDirectory())
        _ = try await service.run("send", server.url, "--json", #"{"a":1}"#)
        _ = try await service.run(
            "send",
            server.url,
            "--json",
            "{}",
            "-H",
            "content-type: application/ld+json"
        )
        let (first, second) = (server.requests[0], server.requests[1])
        #expect(first.body == Array(#"{"a":1}"#.utf8))
        #expect(first.values(of: "Content-Type") == ["application/json"])
        #expect(first.values(of: "Accept") == ["application/json"])
        #expect(second.values(of: "Content-Type") == ["application/ld+json"])
    }

    @Test func `the exit status reports the outcome`() async throws {
        let server = try ScriptedServer { Self.status(Int($0.target.dropFirst())!) }
        let service = try await RunningService(
            in: try ScratchDirectory(),
            environment: RunningService.quickRetries
        )
        let cases: [(answer: String, option: String, expected: CInt)] = [
            ("204", "--fifo", 0), ("404", "--fifo", 1), ("404", "--check-status", 4),
            ("501", "--check-status", 5), ("501", "--wait", 1), ("204", "--wait", 0),
            ("404", "--expect=status=404", 0), ("404", "--expect=status=200", 1),
        ]
        for (answer, option, expected) in cases {
            let sent = try await service.run("send", "\(server.url)/\(answer)", option)
            #expect(sent.ending == .exited(expected), "\(answer) \(option): \(sent.errors)")
            // A request that failed has a second line, which says how to try it again.
            #expect(sent.output.count == 1 && sent.errors.count == (expected == 0 ? 1 : 2))
        }
    }

    @Test func `--wait waits until the request is finished`() async throws {
        let server = try ScriptedServer { $0.number < 3 ? .close : .respond("thanks") }
        let service = try await RunningService(in: try ScratchDirectory())
        let waiting = try Command.start([
            "send", server.url, "-d", "x", "--wait", "--format", "json", "--socket", service.socket,
        ])
        for number in 1...2 {
            await server.requests(atLeast: number)
            #expect(try await service.run("queue", "flush").ending == .exited(0))
        }
        let outcome = try await waiting.outcome()
        #expect(outcome.ending == .exited(0))
        let sent = try Command.json(try #require(outcome.output.first))
        #expect(sent["state"] as? String == "delivered" && sent["status"] as? Int == 200)
        #expect(sent["body_base64"] as? String == Data("thanks".utf8).base64EncodedString())
    }

    @Test func `--wait with a duration exits with 75 after the duration`() async throws {
        let server = try ScriptedServer { _ in Self.status(503) }
        let service = try await RunningService(in: try ScratchDirectory())
        // The duration follows an equals sign or a space.
        let sent = try await service.run("send", "--wait=50ms", server.url, "--check-status")
        #expect(sent.ending == .exited(75))
        #expect(sent.output.count == 1 && sent.errors.first?.hasPrefix("queued") == true, "\(sent.errors)")
        #expect(sent.errors.last == Self.unfinished)
        let apart = try await service.run("send", "--wait", "50ms", server.url)
        #expect(apart.ending == .exited(75), "\(apart.errors)")
    }

    @Test func `--wait reports that the request is kept when the service stops`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let service = try await RunningService(in: try ScratchDirectory())
        let waiting = try Command.start(["send", server.url, "--wait", "--socket", service.socket])
        await server.requests(atLeast: 1)
        try await waiting.output.wait { $0.count == 1 }
        service.process.signal(SIGTERM)
        let outcome = try await waiting.outcome()
        #expect(outcome.ending == .exited(75), "\(outcome.errors)")
        #expect(outcome.errors == ["queued: the queue has stopped", Self.unfinished])
    }

    @Test func `a command with an id can be repeated without a second request`() async throws {
        let server = try ScriptedServer()
        let service = try await RunningService(in: try ScratchDirectory())
        let known = "the queue already has a request with this id"
        for messages in [["delivered: HTTP 200"], [known, "delivered: HTTP 200"]] {
            let sent = try await service.run("send", server.url, "-d", "x", "--id", "order-7")
            #expect(sent.ending == .exited(0) && sent.output == ["order-7"])
            #expect(sent.errors == messages)
        }
        #expect(server.requests.count == 1)
    }

    @Test func `after a lost response, the command can be repeated with the printed id`() async throws {
        let directory = try ScratchDirectory()
        let service = try ScriptedServer(unixPath: directory.file("socket")) { _ in .close }
        let sent = try await Command.run("send", "http://127.0.0.1:1/", "--socket", directory.file("socket"))
        #expect(sent.ending == .exited(2))
        let id = try Command.json(String(decoding: service.requests[0].body, as: UTF8.self))["id"] as? String
        let hint = try #require(sent.errors.last)
        #expect(
            hint.hasPrefix(
                "hint: the request may have been accepted; repeating the command with `--id \(try #require(id))`"
            )
        )
    }
}

/// The options of `netwatch send` for the delivery, as the queue stores them.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DeliveryOptionTests {
    @Test func `all delivery options are stored`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let first = try await service.keep("http://127.0.0.1:1/first")
        let id = try await service.keep(
            "http://127.0.0.1:1/",
            "-X",
            "POST",
            "--lane",
            "reports",
            "--priority",
            "2",
            "--ttl",
            "1d",
            "--at",
            "2h",
            "--replace-key",
            "daily",
            "--dependency",
            // A prefix that no other id has.
            String(first.prefix(30)),
            "--idempotency-key",
            "k-1",
            "--at-most-once",
            "--expect",
            "status=201"
        )
        let details = try await service.details(of: id)
        let request = try #require(details["request"] as? [String: Any])
        #expect(request["lane"] as? String == "reports" && request["priority"] as? Int == 2)
        #expect(request["state"] as? String == "blocked")
        let options = try #require(details["options"] as? [String: Any])
        #expect(details["dependencies"] as? [String] == [first])
        #expect(options["replace_key"] as? String == "daily")
        #expect(details["idempotency_key"] as? String == "k-1")
        #expect(options["at_most_once"] as? Bool == true)
        let (created, expires) = try (
            #require(request["created"] as? String), #require(request["expires"] as? String)
        )
        #expect(created.prefix(8) <= expires.prefix(8) && created != expires)
    }

    @Test func `--at accepts a time or a duration`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        for (option, isLater) in [
            ("2026-01-31T12:34:56Z", false), ("2001-01-01T00:00:00.5+01:00", false), ("3d", true),
        ] {
            let id = try await service.keep("http://127.0.0.1:1/\(isLater)", "--at", option, "--lane", option)
            let details = try await service.details(of: id)
            let due = (details["request"] as? [String: Any])?["due"] as? String
            let now = Date().ISO8601Format()
            #expect(due.map { $0 > now } ?? false == isLater || !isLater, "\(option) \(due ?? "nil")")
        }
    }

    @Test func `invalid options are rejected, and the queue is not changed`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        try await service.keep("http://127.0.0.1:1/")
        let before = try await service.run("queue", "list", "--format", "json").output
        let cases: [([String], String)] = [
            (["--ttl", "0"], "`--ttl`: `0` is not a duration from 1ms to 366d"),
            (["--ttl", "367d"], "`--ttl`: `367d` is not a duration from 1ms to 366d"),
            (["--at", "400d"], "366 days"),
            (["--at", "2h", "--ttl", "1h"], "expire before"), (["--priority", "10"], "priority is 10"),
            (["--priority", "1", "--fifo"], "cannot be combined with `--fifo`"),
            (["--dependency", "no-such"], "`no-such`"),
            (["--id", "a", "--dependency", "a"], "`a`"),
            (["--replace-key", ""], "`--replace-key` must not be empty"),
            (["--idempotency-key", "ü"], "idempotency key"), (["--lane", ""], "lane"), (["--id", ""], "id"),
            (["--expect", "status=99"], "expectation"), (["-H", "Authorization: x"], "--queue never"),
        ]
        for (options, words) in cases {
            let sent = try await service.run(["send", "http://127.0.0.1:1/"] + options)
            #expect(sent.ending == .exited(64) && sent.output.isEmpty, "\(options): \(sent.ending)")
            #expect(sent.errors.joined().contains(words), "\(sent.errors)")
        }
        #expect(try await service.run("queue", "list", "--format", "json").output == before)
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
            #expect(sent.errors.first?.hasSuffix(#"write a comma in a value as `\,`"#) == true)
        }
    }
}

/// Bodies that do not fit into one message.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SendBodyTests {
    /// A body of several pieces, the last of which is short.
    private static let body: [UInt8] = {
        var generator = SeededGenerator(seed: 7)
        let words = (0..<(3 << 20) / 8).map { _ in generator.next() }
        return words.withUnsafeBytes(Array.init) + Array("the rest".utf8)
    }()

    private func file(in directory: ScratchDirectory, _ bytes: [UInt8] = body) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: directory.file("body")))
        return directory.file("body")
    }

    @Test func `a body of 3 MiB arrives unchanged from every source`() async throws {
        let server = try ScriptedServer()
        let directory = try ScratchDirectory()
        let file = try file(in: directory)
        let service = try await RunningService(in: directory)
        for options in [["-T", file], ["-T", "-"], ["-d", "@\(file)"], ["-d", "@-"], ["--json", "@-"]] {
            let sent = try await service.run(["send", server.url] + options, input: file)
            #expect(sent.ending == .exited(0), "\(sent.errors)")
        }
        #expect(server.requests.count == 5 && server.requests.allSatisfy { $0.body == Self.body })
    }

    @Test func `bodies around the piece size arrive unchanged`() async throws {
        let server = try ScriptedServer()
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        for length in [0, 1, 64 << 10, (64 << 10) + 1, 1 << 20, (1 << 20) + 1, 2 << 20] {
            let file = try file(in: directory, Array(Self.body.prefix(length)))
            #expect(try await service.run("send", server.url, "-T", file).ending == .exited(0))
            // Compared outside `#expect`, so that a failure does not print both bodies.
            let isSame = server.requests.last?.body == Array(Self.body.prefix(length))
            #expect(isSame, "\(length) bytes")
        }
    }

    @Test func `the file can be deleted once the request is accepted`() async throws {
        let server = try ScriptedServer()
        let directory = try ScratchDirectory()
        let file = try file(in: directory)
        let service = try await RunningService(in: directory)
        try await service.pause()
        try await service.keep(server.url, "-T", file)
        try FileManager.default.removeItem(atPath: file)
        _ = try await service.run("queue", "resume")
        let isSame = await server.requests(atLeast: 1).first?.body == Self.body
        #expect(isSame)
    }

    @Test func `pipes and too long files are rejected and leave nothing in the spool`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        try shell("mkfifo \(directory.file("pipe")); truncate -s 513M \(directory.file("long"))")
        for (name, words) in [("pipe", "is not a regular file"), ("long", "at most 536870912")] {
            let sent = try await service.run("send", "http://127.0.0.1:1/", "-T", directory.file(name))
            #expect(sent.ending == .exited(64))
            #expect(sent.errors.first?.contains("`\(directory.file(name))`") == true, "\(sent.errors)")
            #expect(sent.errors.first?.contains(words) == true, "\(sent.errors)")
        }
        #expect(try await service.queue().isEmpty)
        #expect(try shell("ls \(directory.file("state/spool"))").isEmpty)
    }
}

internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct ServiceTests {
    @Test func `a deliverable request is delivered immediately`() async throws {
        let server = try ScriptedServer { _ in .respond("thanks") }
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run(
            "send",
            server.url + "/orders?id=1",
            "-d",
            "{}",
            "-H",
            "X-Note: a: b"
        )
        #expect(sent.ending == .exited(0))
        #expect(sent.output.count == 1)
        #expect(sent.errors == ["delivered: HTTP 200"])
        let request = try #require(server.requests.first)
        #expect(
            request.method == "POST" && request.target == "/orders?id=1" && request.body == Array("{}".utf8)
        )
        #expect(request.values(of: "X-Note") == ["a: b"])
        #expect(request.values(of: "Idempotency-Key").count == 1)
        let entry = try #require(try await service.queue().first)
        #expect(entry["id"] as? String == sent.output.first)
        #expect(entry["state"] as? String == "delivered")
        #expect(entry["status"] as? Int == 200)
    }

    @Test func `a permanently rejected request exits with 1`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 422, headers: [], body: []) }
        let service = try await RunningService(
            in: try ScratchDirectory(),
            environment: RunningService.quickRetries
        )
        let sent = try await service.run("send", server.url, "-X", "PUT")
        #expect(sent.ending == .exited(1))
        #expect(sent.errors.first?.hasPrefix("dead: ") == true)
    }

    @Test func `a rejected message names the error`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let refused: [([String], String)] = [
            (["ftp://example.com/"], "http"),
            (["http://user:secret@example.com/"], "password"),
            (["http://example.com/", "-X", "BAD METHOD"], "BAD METHOD"),
            (["http://example.com/", "-H", "Authorization: Bearer x"], "Authorization"),
            (["http://example.com/", "-H", "Transfer-Encoding: chunked"], "Transfer-Encoding"),
            (["http://example.com/", "-X", "CONNECT"], "CONNECT"),
            (["http://example.com/", "-X", "HEAD", "-d", "x"], "HEAD"),
        ]
        for (arguments, words) in refused {
            let process = try Command.start(
                ["send"] + arguments + ["--socket", service.socket]
            )
            #expect(try await process.end() == .exited(64), "\(arguments)")
            #expect(process.errors.values.first?.contains(words) == true, "\(process.errors.values)")
        }
        #expect(try await service.queue().isEmpty)
    }

    @Test func `a second service on the same store reports the owner`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        let second = try await Command.run(
            "serve",
            "--state-dir",
            directory.file("state"),
            "--socket",
            directory.file("other")
        )
        #expect(second.ending == .exited(2))
        #expect(second.errors.count == 3, "an error and a hint")
        let message = try #require(second.errors.first)
        #expect(message.contains(directory.file("state")))
        #expect(message.contains("\(service.process.pid)"))
    }

    @Test func `a second service on the same socket is rejected`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        let second = try await Command.run(
            "serve",
            "--state-dir",
            directory.file("state2"),
            "--socket",
            service.socket
        )
        #expect(second.ending == .exited(2))
        #expect(second.errors.first?.contains(service.socket) == true)
        #expect(access(directory.file("state2"), F_OK) == -1)
        #expect(try await service.queue().isEmpty)
    }

    @Test func `a removed socket is bound again, and this is logged`()
        async throws
    {
        let service = try await RunningService(in: try ScratchDirectory())
        #expect(unlink(service.socket) == 0)
        try await service.process.errors.wait { $0.contains { $0.hasSuffix("socket is bound again") } }
        #expect(try await service.queue().isEmpty)
        #expect(try await service.run("queue", "stats").ending == .exited(0))
    }

    @Test func `SIGTERM stops the service cleanly`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        service.process.signal(SIGTERM)
        #expect(try await service.process.end() == .exited(0))
        #expect(access(service.socket, F_OK) == -1)
    }

    @Test func `a request that is given up is logged, and a delivered one is not`() async throws {
        let accepting = try ScriptedServer { _ in .respond("thanks") }
        let refusing = try ScriptedServer { _ in .respond(status: 422, headers: [], body: []) }
        let service = try await RunningService(
            in: try ScratchDirectory(),
            environment: RunningService.quickRetries
        )
        let good = try await service.run("send", accepting.url, "-X", "PUT", "--id", "good")
        #expect(good.ending == .exited(0))
        let bad = try await service.run("send", refusing.url, "-X", "PUT", "--id", "bad")
        #expect(bad.ending == .exited(1))
        try await service.process.errors.wait { log in
            log.contains { $0.contains("request `bad` to `127.0.0.1` was given up: ") }
        }
        #expect(!service.process.errors.values.contains { $0.contains("`good`") })
    }

    @Test func `lines for the journal begin with their priority, and have no time`() async throws {
        let directory = try ScratchDirectory()
        // systemd sets the variable to the device and the inode of its socket.
        let script = "JOURNAL_STREAM=$(stat --dereference --format=%d:%i /dev/stderr) exec \"$@\""
        let paths = ["--state-dir", directory.file("state"), "--socket", directory.file("socket")]
        let service = try Subprocess("/bin/sh", ["-c", script, "sh", Command.path, "serve"] + paths)
        defer { service.signal(SIGTERM) }
        try await service.errors.wait { log in
            log.contains { $0.hasPrefix("<6>ready dead=0 ") && $0.hasSuffix("/state") }
        }
    }

    @Test func `a start is logged with the number of stored requests`() async throws {
        let directory = try ScratchDirectory()
        let first = try await RunningService(in: directory)
        try await first.pause()
        try await first.keep("http://127.0.0.1:1/", "--id", "a")
        try await first.keep("http://127.0.0.1:1/", "--id", "b")
        #expect(try await first.run("queue", "hold", "b").ending == .exited(0))
        try await first.stop()
        let second = try await RunningService(in: directory)
        let line = second.process.errors.values.first { $0.hasSuffix("ready") } ?? ""
        #expect(line.contains("dead=0 held=1 inflight=0 pending=1 socket="), "\(line)")
    }

    @Test func `a stop is logged with counts, and returns requests in flight to the queue`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        try await service.keep(server.url, "--id", "a")
        await server.requests(atLeast: 1)
        let held = try await service.run("queue", "hold", "a")
        #expect(held.output == ["a  inflight until its attempt ends, then held"], "\(held.errors)")
        #expect(try await service.run("queue", "release", "a").output == ["a  inflight"])
        service.process.signal(SIGTERM)
        #expect(try await service.process.end() == .exited(0))
        let log = service.process.errors.values
        #expect(
            log.dropLast().last?.hasSuffix("held=0 inflight=1 pending=0 [NetwatchService] stopping") == true,
            "\(log)"
        )
        #expect(log.last?.hasSuffix(" stopped") == true, "\(log)")
        let list = try await Command.run(
            "queue",
            "retry",
            "a",
            "--state-dir",
            directory.file("state"),
            environment: ["NETWATCH_SOCKET": "/no/such/socket"]
        )
        #expect(list.output == ["a  pending"], "\(list.errors)")
    }

    /// timeout(1) signals its child and then the process group, so the child receives the signal twice.
    @Test func `a second signal does not interrupt the shutdown`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.keep(server.url)
        await server.requests(atLeast: 1)
        // Two different signals, because the kernel may merge two pending signals of the same number.
        for signal in [SIGTERM, SIGINT] { service.process.signal(signal) }
        #expect(try await service.process.end() == .exited(0))
    }

    @Test func `a service started in the background handles SIGINT, although the shell ignores it`()
        async throws
    {
        let directory = try ScratchDirectory()
        let serve =
            "\(Command.path) serve --state-dir \(directory.file("state")) --socket \(directory.file("socket"))"
        let script = try Subprocess("/bin/sh", ["-c", "\(serve) & echo $!; wait $!; echo status $?"])
        try await script.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        // Another thread reads the standard output.
        try await script.output.wait { !$0.isEmpty }
        kill(try #require(script.output.values.first.flatMap { pid_t($0) }), SIGINT)
        #expect(try await script.outcome().output.last == "status 0")
    }

    @Test func `send reports that the request is kept when the service stops`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let service = try await RunningService(in: try ScratchDirectory())
        let waiting = try Command.start(["send", server.url, "-d", "1", "--socket", service.socket])
        await server.requests(atLeast: 1)
        service.process.signal(SIGTERM)
        let outcome = try await waiting.outcome()
        #expect(outcome.ending == .exited(0) && outcome.output.count == 1)
        #expect(outcome.errors == ["queued: the queue has stopped"])
        #expect(try await service.process.end() == .exited(0))
    }

    @Test func `missing directories are created, the private ones with mode 0700`() async throws {
        let directory = try ScratchDirectory()
        let process = try Command.start(
            ["serve"],
            environment: [
                "STATE_DIRECTORY": directory.file("a/b/state"), "RUNTIME_DIRECTORY": directory.file("run"),
            ]
        )
        defer { process.signal(9) }
        try await process.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        let modes = try shell("stat -c %a \(directory.file("a/b/state")) \(directory.file("run"))")
        #expect(modes == "700\n755\n")
    }

    @Test func `all files of the service are for its user alone, and usable for it, with any umask`()
        async throws
    {
        let directory = try ScratchDirectory()
        let state = directory.file("state")
        let serve = "exec \(Command.path) serve --state-dir \(state) --socket \(directory.file("socket"))"
        for mask in ["777", "000"] {
            let process = try Subprocess("/bin/sh", ["-c", "umask \(mask); \(serve)"])
            defer { process.signal(9) }
            try await process.errors.wait { $0.contains { $0.hasSuffix("ready") } }
            let others = "find . -type f ! -perm 600"
            let names = try shell("cd \(state); \(others); ls history.sqlite history.sqlite-wal")
            #expect(names == "history.sqlite\nhistory.sqlite-wal\n")
            // A file that an earlier service has created without permissions.
            try shell("chmod 0 \(state)/history.sqlite*")
            process.signal(9)
            _ = try await process.end()
        }
    }

    @Test func `NETWATCH_STATE_DIR names the directory, and a variable without effect is a warning`()
        async throws
    {
        let directory = try ScratchDirectory()
        let environment = [
            "NETWATCH_STATE_DIR": directory.file("named"), "STATE_DIRECTORY": directory.file("other"),
            "NETWATCH_SOCKET": directory.file("socket"), "NETWATCH_LOG_LEVEL": "debug",
        ]
        let process = try Command.start(["serve"], environment: environment)
        defer { process.signal(9) }
        try await process.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        let warning =
            "the environment variable `NETWATCH_LOG_LEVEL` has no effect; did you mean `NETWATCH_SERVICE_LOG_LEVEL`?"
        #expect(process.errors.values.contains { $0.contains(warning) }, "\(process.errors.values)")
        #expect(try shell("ls \(directory.path)").contains("named\n"))
        #expect(try !shell("ls \(directory.path)").contains("other"))
        process.signal(SIGTERM)
        #expect(try await process.end() == .exited(0))
        // The command opens the directory, as with `--state-dir`.
        let list = try await Command.run("queue", "list", environment: environment)
        #expect(list.ending == .exited(0), "\(list.errors)")
        let check = try await Command.run("config", "check", environment: environment)
        #expect(check.errors == ["warning: \(warning)"])
    }

    @Test func `a socket whose directory has no parent is rejected, and no directory is created`()
        async throws
    {
        let directory = try ScratchDirectory()
        let socket = directory.file("rnu/netwatch/netwatch.sock")
        let arguments = ["serve", "--state-dir", directory.file("state"), "--socket", socket]
        let refused = try await Command.start(arguments).outcome()
        #expect(refused.ending == .exited(2))
        let message =
            "error: could not create `\(directory.file("rnu/netwatch"))`, the directory of the control socket: "
            + "No such file or directory"
        #expect(refused.errors.first == message, "\(refused.errors)")
        #expect(try shell("ls \(directory.path)") == "state\n")
    }

    @Test func `a socket path that is another file is rejected, and no lock file is left`() async throws {
        let directory = try ScratchDirectory()
        try shell("echo precious >\(directory.file("file"))")
        let refused = try await Command.run(
            "serve",
            "--state-dir",
            directory.file("state"),
            "--socket",
            directory.file("file")
        )
        #expect(refused.ending == .exited(2))
        #expect(refused.errors.first?.contains(directory.file("file")) == true)
        #expect(try shell("cd \(directory.path) && ls && cat file") == "file\nprecious\n")
    }

    @Test func `an unusable state directory exits with 2 and is reported`() async throws {
        let process = try Command.start(["serve", "--state-dir", "/proc/none", "--socket", "/proc/none/s"])
        let outcome = try await process.outcome()
        #expect(outcome.ending == .exited(2))
        #expect(outcome.errors.count == 1 && outcome.errors[0].contains("/proc/none"), "\(outcome.errors)")
    }

    @Test func `the service manager receives READY once the socket responds, and STOPPING`() async throws {
        let directory = try ScratchDirectory()
        let manager = try NotifySocket(directory.file("notify"))
        let process = try Command.start(
            ["serve"],
            environment: [
                "NOTIFY_SOCKET": directory.file("notify"), "STATE_DIRECTORY": directory.file("state"),
                "RUNTIME_DIRECTORY": directory.path,
            ]
        )
        defer { process.signal(9) }
        let ready = try manager.receive()
        #expect(ready.contains("READY=1") && ready.contains("STATUS=network: "))
        let socket = directory.file("netwatch.sock")
        #expect(try await Command.run("queue", "list", "--socket", socket).ending == .exited(0))
        process.signal(SIGTERM)
        #expect(try manager.receive() == "STOPPING=1")
        #expect(try await process.end() == .exited(0))
    }

    @Test func `the service manager receives the state again when it has changed`() async throws {
        let directory = try ScratchDirectory()
        let manager = try NotifySocket(directory.file("notify"))
        let service = try await RunningService(
            in: directory,
            environment: ["NOTIFY_SOCKET": directory.file("notify")]
        )
        #expect(try manager.receive().hasSuffix("; queue: empty"))
        try await service.pause()
        try await service.keep("http://127.0.0.1:1/")
        var status = ""
        while !status.hasSuffix("; queue: 1 waiting") { status = try manager.receive() }
        #expect(status.hasPrefix("STATUS=network: "))
    }

    @Test func `curl can use the control socket`() async throws {
        let server = try ScriptedServer()
        let service = try await RunningService(in: try ScratchDirectory())
        let answer = try shell(
            """
            curl -sS --unix-socket \(service.socket) http://netwatch/v1/requests \
                -d '{"url":"\(server.url)/a","method":"PUT","body":"hello","headers":[["X-A","b"]]}'
            """
        )
        #expect(try Command.json(answer)["state"] as? String == "delivered")
        #expect(server.requests.first?.body == Array("hello".utf8))
        #expect(server.requests.first?.values(of: "X-A") == ["b"])
        for (body, words) in [
            ("{", "not valid JSON"), ("{}", "`url` is missing"),
            (#"{"url":7}"#, "`url` is `7`; it must be a string"),
            (#"{"url":"http://a/","headers":[["x"]]}"#, "name and a value"),
            (#"{"url":"http://a/","body_base64":"*"}"#, "valid Base64"),
        ] {
            let problem = try shell(
                "curl -sS --unix-socket \(service.socket) http://netwatch/v1/requests -d '\(body)'"
            )
            #expect(try Command.json(problem)["status"] as? Int == 400)
            #expect(problem.contains(words), "\(problem)")
        }
    }
}

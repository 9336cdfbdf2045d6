internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// A queue with requests, accessed through the service or in its directory.
final class QueueFixture {
    enum Backend: String, CaseIterable {
        case service, directory
    }

    let directory = try! ScratchDirectory()
    let backend: Backend
    private(set) var service: RunningService?
    private(set) var ids: [String] = []

    /// - Parameter count: The number of requests to `http://127.0.0.1:1/N`. The queue is paused.
    init(_ backend: Backend, count: Int) async throws {
        self.backend = backend
        let service = try await RunningService(in: directory)
        try await service.pause()
        for number in 0..<count {
            ids.append(
                try await service.keep(
                    "http://127.0.0.1:1/\(number)",
                    "-d",
                    "body \(number)",
                    "--id",
                    "req-\(number)"
                )
            )
        }
        self.service = service
        if backend == .directory { try await stopService() }
    }

    func stopService() async throws {
        try await service?.stop()
        service = nil
    }

    func run(_ arguments: String..., input: String? = nil) async throws -> Subprocess.Outcome {
        let access =
            backend == .service
            ? ["--socket", directory.file("socket")] : ["--state-dir", directory.file("state")]
        let descriptor = try input.map { text in
            try Data(text.utf8).write(to: URL(fileURLWithPath: directory.file("input")))
            return open(directory.file("input"), O_RDONLY | O_CLOEXEC)
        }
        defer { if let descriptor { close(descriptor) } }
        return try await Command.start(
            ["queue"] + arguments + access,
            environment: ["NETWATCH_SOCKET": "/no/such/socket"],
            input: descriptor
        ).outcome()
    }

    /// The states of all requests by id.
    func states() async throws -> [String: String] {
        let entries = try await run("list", "--format", "json").output.map(Command.json)
        return Dictionary(
            uniqueKeysWithValues: entries.compactMap { entry in
                (entry["id"] as? String).flatMap { id in (entry["state"] as? String).map { (id, $0) } }
            }
        )
    }
}

/// `netwatch queue` with and without a running service.
@Suite(.serialized, .timeLimit(.minutes(5))) struct QueueCommandTests {
    @Test(arguments: QueueFixture.Backend.allCases)
    func `requests are held, released, dropped and retried, with one line each`(
        backend: QueueFixture.Backend
    ) async throws {
        let queue = try await QueueFixture(backend, count: 3)
        let held = try await queue.run("hold", "req-0", "req-1")
        #expect(held.ending == .exited(0) && held.output == ["req-0  held", "req-1  held"], "\(held.errors)")
        #expect(try await queue.run("release", "req-1").output == ["req-1  pending"])
        #expect(try await queue.run("cancel", "req-2").output == ["req-2  cancelled"])
        #expect(try await queue.run("retry", "req-0").output == ["req-0  pending"])
        #expect(try await queue.states() == ["req-0": "pending", "req-1": "pending", "req-2": "cancelled"])
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `failed edits are reported, the others are done, and the exit status is 1`(
        backend: QueueFixture.Backend
    )
        async throws
    {
        let queue = try await QueueFixture(backend, count: 2)
        let dropped = try await queue.run("cancel", "req-0", "no-such-request", "req")
        #expect(dropped.ending == .exited(1) && dropped.output == ["req-0  cancelled"])
        #expect(dropped.errors.count == 2, "\(dropped.errors)")
        #expect(dropped.errors.first?.contains("`no-such-request`") == true)
        #expect(
            dropped.errors.last?.contains("no request has the id `req`; the beginning of an id must have")
                == true
        )
        let again = try await queue.run("hold", "req-0")
        #expect(again.ending == .exited(1) && again.errors.first?.contains("cancelled") == true)
        #expect(try await queue.states() == ["req-0": "cancelled", "req-1": "pending"])
    }

    @Test(arguments: ["text", "json"])
    func `with --exit-code, a list that is not empty ends with 1`(format: String) async throws {
        let queue = try await QueueFixture(.service, count: 1)
        let output = ["--format", format]
        func ending(_ arguments: String...) async throws -> Subprocess.Ending {
            try await queue.service?.run(["queue"] + arguments + output).ending ?? .exited(-1)
        }
        #expect(try await ending("list") == .exited(0))
        #expect(try await ending("list", "--exit-code") == .exited(1))
        #expect(try await ending("list", "--exit-code", "--state", "held,dead") == .exited(0))
        #expect(try await ending("dead", "--exit-code") == .exited(0))
    }

    @Test func `resume reports what was paused`() async throws {
        let queue = try await QueueFixture(.service, count: 1)
        let lanes = try await queue.run("resume", "--host", "127.0.0.1")
        let rest = "the whole queue is still paused: `netwatch queue resume` ends that"
        #expect(lanes.ending == .exited(0) && lanes.errors == ["nothing was paused; \(rest)"])
        #expect(try await queue.run("resume").errors == ["resumed the queue: 1 lane with requests"])
        #expect(try await queue.run("resume").errors == ["nothing was paused"])
        _ = try await queue.run("pause", "--host", "127.0.0.1")
        #expect(try await queue.run("resume", "--host", "127.0.0.1").errors == ["resumed 1 lane"])
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `ids are read from standard input or selected by a filter`(backend: QueueFixture.Backend)
        async throws
    {
        let queue = try await QueueFixture(backend, count: 4)
        let held = try await queue.run("hold", "-", input: "\u{feff}req-0\n\n  req-1 \nreq-2")
        #expect(held.ending == .exited(0) && held.output.count == 3, "\(held.errors)")
        let nothing = try await queue.run("release", "--all", "--yes", "--host", "elsewhere")
        #expect(nothing.ending == .exited(0) && nothing.output.isEmpty)
        #expect(nothing.errors == ["no request matches `--host elsewhere`: nothing was released"])
        let released = try await queue.run("release", "--all", "--yes", "--host", "127.0.0.1")
        #expect(released.ending == .exited(0) && released.errors == ["released 3 requests"])
        #expect(Set(try await queue.states().values) == ["pending"])
        let dropped = try await queue.run("cancel", "--all", "--yes", "--format", "json")
        #expect(dropped.ending == .exited(0))
        let numbers = try Command.json(try #require(dropped.output.first))
        #expect(numbers["done"] as? Int == 4 && numbers["refused"] as? Int == 0)
        #expect(Set(try await queue.states().values) == ["cancelled"])
        let late = try await queue.run("hold", "--all", "--yes", "--state", "cancelled")
        #expect(late.ending == .exited(1) && late.errors.first == "held 0 requests", "\(late.errors)")
        #expect(
            late.errors.last?.contains("4 requests matched, but hold does not apply to their state") == true
        )
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `an id can be shortened to eight characters if it is unambiguous`(
        backend: QueueFixture.Backend
    ) async throws {
        let queue = try await QueueFixture(.service, count: 0)
        let service = try #require(queue.service)
        for id in ["order-10", "invoice-2026-1", "invoice-2026-10", "report-2026-7"] {
            try await service.keep("http://127.0.0.1:1/", "--id", id)
        }
        if backend == .directory { try await queue.stopService() }
        func run(_ arguments: String...) async throws -> Subprocess.Outcome {
            try await Command.run(["queue"] + arguments, backend, queue.directory)
        }
        // Only one request has this prefix, but a later request could have exactly this id.
        for action in ["cancel", "show", "hold", "retry"] {
            let short = try await run(action, "order-1")
            #expect(short.ending == .exited(1) && short.output.isEmpty, "\(action): \(short.output)")
        }
        #expect(try await run("hold", "report-2").output == ["report-2026-7  held"])
        #expect(try await run("show", "report-2").output.first == "id        report-2026-7")
        let ambiguous = try await run("cancel", "invoice-")
        #expect(ambiguous.ending == .exited(1))
        #expect(
            ambiguous.errors.first?.contains(
                "several ids begin with `invoice-`: `invoice-2026-1`, `invoice-2026-10`"
            ) == true,
            "\(ambiguous.errors)"
        )
        #expect(try await run("cancel", "invoice-2026-1").output == ["invoice-2026-1  cancelled"])
        let kept = try await run("list", "--state", "pending")
        #expect(kept.output.count == 2 && kept.output[0].hasPrefix("order-10 "), "\(kept.output)")
    }

    @Test func `of many requests whose ids begin alike, four are listed`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for number in 1...5 { try await service.keep("http://127.0.0.1:1/", "--id", "reading-\(number)") }
        let ids = "`reading-1`, `reading-2`, `reading-3`, `reading-4`"
        for arguments in [["show", "reading-"], ["retry", "reading-"]] {
            let refused = try await service.run(["queue"] + arguments)
            #expect(refused.ending == .exited(1))
            #expect(refused.errors == ["error: several ids begin with `reading-`: \(ids), and more"])
        }
        for action in ["show", "retry"] {
            #expect(
                try await service.run("queue", action, "read").errors == [
                    "error: no request has the id `read`; the beginning of an id must have at least 8 characters"
                ]
            )
        }
    }

    @Test func `on a terminal, --all asks for confirmation`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let command = "\(Command.path) queue cancel --all --state-dir \(queue.directory.file("state"))"
        let refused = try shell("echo n | script -qec '\(command)' /dev/null || echo $?")
        #expect(refused.contains("cancel 1 request? [y/N]") && refused.hasSuffix("1\n"), "\(refused)")
        #expect(try await queue.states() == ["req-0": "pending"])
        _ = try shell("echo y | script -qec '\(command)' /dev/null")
        #expect(try await queue.states() == ["req-0": "cancelled"])
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `a list is filtered and paged`(backend: QueueFixture.Backend) async throws {
        let queue = try await QueueFixture(backend, count: 5)
        _ = try await queue.run("cancel", "req-1", "req-3")
        func ids(_ outcome: Subprocess.Outcome) throws -> [String?] {
            try outcome.output.map { try Command.json($0)["id"] as? String }
        }
        let json = ["--format", "json"]
        #expect(
            try ids(try await queue.run("list", json[0], json[1])) == [
                "req-0", "req-2", "req-4", "req-3", "req-1",
            ]
        )
        #expect(
            try ids(try await queue.run("list", "--state", "cancelled", json[0], json[1])) == [
                "req-3", "req-1",
            ]
        )
        #expect(try ids(try await queue.run("list", "-n", "4", json[0], json[1])).count == 4)
        #expect(try ids(try await queue.run("list", "--host", "elsewhere", json[0], json[1])).isEmpty)
        #expect(try ids(try await queue.run("list", "--lane", "", json[0], json[1])).count == 5)
        #expect(try ids(try await queue.run("dead", json[0], json[1])).isEmpty)
        #expect(try await queue.run("dead").errors.first == "there are no dead requests")
        let elsewhere = try await queue.run("dead", "--host", "elsewhere")
        #expect(elsewhere.errors.first == "no dead request matches `--host elsewhere`", "\(elsewhere.errors)")
        let none = try await queue.run("list", "--state", "dead", "--host", "elsewhere")
        #expect(none.errors.first == "no request matches `--state dead --host elsewhere`", "\(none.errors)")
        let text = try await queue.run("list", "--state", "pending,held")
        #expect(text.output.count == 3 && text.output[0].hasPrefix("req-0"))
        #expect(
            text.errors == ["whole queue: 3 pending, 0 inflight, 0 held, 0 delivered, 0 dead, 2 cancelled"]
        )
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `stats lists the pauses of the queue and of lanes`(backend: QueueFixture.Backend) async throws {
        let queue = try await QueueFixture(backend, count: 2)
        func isPaused() async throws -> Bool? {
            let output = try await queue.run("stats", "--format", "json").output
            return try Command.json(try #require(output.first))["paused"] as? Bool
        }
        #expect(try await isPaused() == true)
        #expect(try await queue.run("resume").errors == ["resumed the queue: 1 lane with requests"])
        #expect(try await isPaused() == false)
        #expect(try await queue.run("pause", "--host", "127.0.0.1", "--lane", "").errors == ["paused 1 lane"])
        #expect(try await queue.run("pause").errors == ["paused the queue: 1 lane with requests"])
        let nowhere = try await queue.run("pause", "--host", "unknown.example")
        #expect(nowhere.ending == .exited(1))
        #expect(nowhere.errors.first?.contains("no lane to the host `unknown.example`") == true)
        let stats = try await queue.run("stats")
        #expect(stats.output.contains("paused      the whole queue"), "\(stats.output)")
        #expect(
            stats.output.contains("            127.0.0.1, no label, user \(geteuid())"),
            "\(stats.output)"
        )
        #expect(stats.output.first?.hasPrefix("requests    ") == true, "\(stats.output)")
        #expect(stats.output.contains { $0.hasPrefix("waiting     2 requests, ") })
        #expect(try await queue.run("resume").ending == .exited(0))
        #expect(try await queue.run("stats").output.contains("paused      no"))
    }

    @Test func `flush says what is still paused`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let host = ["--host", "127.0.0.1"]
        try await service.keep("http://127.0.0.1:1/", "--at", "1h")
        #expect(try await service.run(["queue", "pause"] + host).ending == .exited(0))
        let count = "1 request pending or in flight"
        #expect(
            try await service.run(["queue", "flush"] + host).errors
                == ["flushed the lanes to `127.0.0.1`: \(count); 1 lane still paused"]
        )
        try await service.pause()
        #expect(
            try await service.run("queue", "flush").errors
                == [
                    "flushed all lanes: \(count); the whole queue is still paused: `netwatch queue resume` ends that"
                ]
        )
    }

    @Test func `flush without a service is rejected`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let flushed = try await queue.run("flush")
        #expect(flushed.ending == .exited(69))
        let reason = "only a running service can do this"
        #expect(flushed.errors.first?.contains(reason) == true, "\(flushed.errors)")
        #expect(try await QueueFixture(.service, count: 1).run("flush").ending == .exited(0))
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `show prints the attempts and the response`(backend: QueueFixture.Backend) async throws {
        let server = try ScriptedServer { request in
            request.number == 1
                ? .respond(status: 503, headers: [], body: [])
                : .respond(status: 422, headers: [.init("X-Request-ID", "r-1")], body: Array("because".utf8))
        }
        let queue = try await QueueFixture(.service, count: 0)
        let service = try #require(queue.service)
        let id = try await service.keep(server.url, "-d", "x", "-H", "X-A: b", "--dead-statuses", "422")
        _ = try await queue.run("resume")
        await server.requests(atLeast: 1)
        while try await queue.run("flush").ending == .exited(0), try await queue.states()[id] != "dead" {}
        if backend == .directory { try await queue.stopService() }
        let shown = try await Command.run(
            ["queue", "show", String(id.prefix(35))],
            backend,
            queue.directory
        )
        #expect(shown.ending == .exited(0), "\(shown.errors)")
        let text = shown.output.joined(separator: "\n")
        for words in [
            "dead", "POST \(server.url)", "X-A: b", "attempts  2", "HTTP 503", "HTTP 422, 7 B",
            "X-Request-ID: r-1", "statuses  given up after 422",
        ] {
            #expect(text.contains(words), "\(words) is not in\n\(text)")
        }
        let body = try await Command.run(["queue", "show", id, "--body"], backend, queue.directory)
        #expect(body.output == ["because"])
        let unknown = try await Command.run(["queue", "show", "nope"], backend, queue.directory)
        #expect(unknown.ending == .exited(1) && unknown.errors.first?.contains("`nope`") == true)
    }

    @Test(arguments: ["runtime", String(repeating: "r", count: 120)])
    func `the directory is used if the default path cannot be a socket`(name: String) async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let runtime = queue.directory.file(name)
        try FileManager.default.createDirectory(atPath: runtime, withIntermediateDirectories: false)
        try Data().write(to: URL(fileURLWithPath: runtime + "/netwatch.sock"))
        let environment = [
            "NETWATCH_SOCKET": "", "RUNTIME_DIRECTORY": runtime,
            "STATE_DIRECTORY": queue.directory.file("state"),
        ]
        let list = try await Command.run("queue", "list", environment: environment)
        #expect(list.ending == .exited(0), "\(list.errors)")
        #expect(list.output.contains { $0.contains("req-0") })
        let named = try await Command.start(
            ["queue", "list", "--socket", runtime + "/netwatch.sock"],
            environment: environment
        ).outcome()
        #expect(named.ending == .exited(64), "a socket given by the user must be valid")
    }

    @Test func `queue show prints the expected response, and only if it is not the default`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        let text = "status=201,header=X-Box"
        try await service.keep("http://127.0.0.1:1/", "--id", "expects", "--expect", text)
        try await service.keep("http://127.0.0.1:1/", "--id", "default")
        #expect(try await service.options(of: "expects")["expect"] as? String == text)
        #expect(try await service.run("queue", "show", "expects").output.contains("expects   \(text)"))
        #expect(try await service.options(of: "default")["expect"] == nil)
        let lines = try await service.run("queue", "show", "default").output
        #expect(!lines.contains { $0.hasPrefix("expects") }, "\(lines)")
    }
}

extension Command {
    fileprivate static func run(
        _ arguments: [String],
        _ backend: QueueFixture.Backend,
        _ directory: ScratchDirectory
    ) async throws -> Subprocess.Outcome {
        let options =
            backend == .service
            ? ["--socket", directory.file("socket")] : ["--state-dir", directory.file("state")]
        return try await start(arguments + options).outcome()
    }
}

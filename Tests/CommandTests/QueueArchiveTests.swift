internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// `netwatch queue export`, `import` and `verify`.
@Suite(.serialized, .timeLimit(.minutes(5))) struct QueueArchiveTests {
    private func export(_ queue: QueueFixture, to name: String) async throws -> String {
        let exported = try await queue.run("export")
        #expect(exported.ending == .exited(0), "\(exported.errors)")
        let text = exported.output.map { $0 + "\n" }.joined()
        try Data(text.utf8).write(to: URL(fileURLWithPath: queue.directory.file(name)))
        return queue.directory.file(name)
    }

    @Test(arguments: zip(QueueFixture.Backend.allCases, QueueFixture.Backend.allCases.reversed()))
    func `an export can be imported`(from: QueueFixture.Backend, into: QueueFixture.Backend) async throws {
        let source = try await QueueFixture(from, count: 3)
        _ = try await source.run("hold", "req-1")
        let file = try await export(source, to: "export")
        let target = try await QueueFixture(into, count: 0)
        let imported = try await target.run("import", file)
        #expect(
            imported.ending == .exited(0) && imported.errors == ["imported 3 requests"],
            "\(imported.errors)"
        )
        #expect(try await target.states() == ["req-0": "pending", "req-1": "held", "req-2": "pending"])
        let again = try await target.run("import", "-", input: String(contentsOfFile: file, encoding: .utf8))
        #expect(again.errors == ["imported 0 requests, skipped 3 known"])
    }

    @Test func `only an import creates a queue, and only in an empty directory that is named`() async throws {
        let source = try await QueueFixture(.directory, count: 2)
        let file = try await export(source, to: "export")
        let new = try ScratchDirectory()
        try shell("mkdir \(new.file("lost+found"))")
        let unnamed = try await Command.run(
            "queue",
            "import",
            file,
            environment: ["XDG_STATE_HOME": new.path]
        )
        #expect(unnamed.ending != .exited(0), "\(unnamed.errors)")
        let listed = try await Command.run("queue", "list", "--state-dir", new.path)
        #expect(listed.ending == .exited(64))
        let imported = try await Command.run("queue", "import", file, "--state-dir", new.path)
        #expect(imported.ending == .exited(0) && imported.errors == ["imported 2 requests"])
        let again = try await Command.run("queue", "import", file, "--state-dir", new.path)
        #expect(again.errors == ["imported 0 requests, skipped 2 known"])
        withExtendedLifetime(source) {}
    }

    @Test func `an import warns of requests whose ids belong to others, and ends with 1`() async throws {
        let source = try await QueueFixture(.directory, count: 3)
        let file = try await export(source, to: "export")
        let target = try await QueueFixture(.service, count: 0)
        try await target.service?.keep("http://127.0.0.1:1/other", "--id", "req-1")
        let imported = try await target.run("import", file)
        #expect(imported.ending == .exited(1) && imported.errors.count == 2, "\(imported.errors)")
        let warning = "warning: `req-1` was not imported: the id belongs to a request that differs in: "
        #expect(imported.errors.first?.hasPrefix(warning) == true)
        #expect(imported.errors.last == "imported 2 requests")
        #expect(try await target.states().count == 3)
        withExtendedLifetime(source) {}
    }

    @Test func `the script in the documentation makes an export that can be imported`() async throws {
        let source = try await QueueFixture(.service, count: 2)
        // The body is longer than a page of the control API.
        try shell("head -c 2000000 /dev/urandom >\(source.directory.file("body"))")
        try await source.service?.keep("http://127.0.0.1:1/", "-T", source.directory.file("body"))
        let page = try DocumentationPage("docs/control-api.md")
        let script = try #require(page.commands(under: "`export`").first)
        try shell("cd \(source.directory.file("")); SOCKET=\(source.directory.file("socket")); \(script)")
        let target = try await QueueFixture(.directory, count: 0)
        let imported = try await target.run("import", source.directory.file("export.ndjson"))
        #expect(imported.errors == ["imported 3 requests"])
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `a truncated or edited import changes nothing`(backend: QueueFixture.Backend) async throws {
        let source = try await QueueFixture(.directory, count: 3)
        let file = try await export(source, to: "export")
        try shell("head -n 4 \(file) >\(file).cut; echo '{}' >\(file).foreign")
        try shell("sed 's#127.0.0.1:1/1#127.0.0.1:1/7#' \(file) >\(file).edited")
        let target = try await QueueFixture(backend, count: 1)
        let before = try await target.run("list", "--format", "json").output
        for damage in ["cut", "edited", "foreign"] {
            let imported = try await target.run("import", "\(file).\(damage)")
            #expect(imported.ending == .exited(2), "\(damage)")
            #expect(imported.errors.first?.contains("line ") == true, "\(imported.errors)")
        }
        #expect(try await target.run("list", "--format", "json").output == before)
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `an empty file is a truncated export`(backend: QueueFixture.Backend) async throws {
        let target = try await QueueFixture(backend, count: 0)
        let empty = target.directory.file("empty")
        try Data().write(to: URL(fileURLWithPath: empty))
        for (file, input) in [(empty, nil), ("-", "")] {
            let imported = try await target.run("import", file, input: input)
            #expect(imported.ending == .exited(2))
            #expect(imported.errors.first?.contains("truncated export") == true, "\(imported.errors)")
        }
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `verify reports a sound store`(backend: QueueFixture.Backend) async throws {
        let queue = try await QueueFixture(backend, count: 2)
        let verified = try await queue.run("verify")
        #expect(verified.ending == .exited(0))
        #expect(verified.errors == ["sound: checked 2 requests and 0 files"])
    }

    @Test func `verify finds a changed body`() async throws {
        let queue = try await QueueFixture(.service, count: 0)
        try shell("head -c 200000 /dev/zero >\(queue.directory.file("body"))")
        try await queue.service?.keep(
            "http://127.0.0.1:1/",
            "--id",
            "big",
            "-T",
            queue.directory.file("body")
        )
        try shell(
            "for f in \(queue.directory.file("state"))/spool/*; do printf x | dd of=$f conv=notrunc; done"
        )
        let verified = try await queue.run("verify", "--format", "json")
        #expect(verified.ending == .exited(1))
        #expect(try Command.json(try #require(verified.output.first))["sound"] as? Bool == false)
        #expect(verified.output.first?.contains("body_changed") == true, "\(verified.output)")
        let exported = try await queue.run("export")
        #expect(exported.ending == .exited(1))
        #expect(exported.errors.first?.contains("`big` was not exported") == true, "\(exported.errors)")
    }

    @Test func `a damaged store exits with 78 until it is set aside, and nothing is deleted`() async throws {
        let queue = try await QueueFixture(.directory, count: 2)
        let state = queue.directory.file("state")
        try shell("printf 'no database' | dd of=\(state)/queue.sqlite conv=notrunc")
        let damaged = try Data(contentsOf: URL(fileURLWithPath: state + "/queue.sqlite"))
        #expect(try await queue.run("list").ending == .exited(78))
        let service = try await Command.run(
            "serve",
            "--state-dir",
            state,
            "--socket",
            queue.directory.file("s")
        )
        #expect(service.ending == .exited(78))
        #expect(service.errors.joined().contains("`netwatch queue verify --set-aside`"), "\(service.errors)")
        let moved = try await queue.run("verify", "--set-aside")
        #expect(moved.errors.first?.contains(state) == true && moved.output.count == 1, "\(moved.errors)")
        let command = "netwatch queue import --keep-submitters --state-dir '\(state)' '\(moved.output[0])'"
        #expect(moved.errors.last == "`\(command)`")
        let kept = URL(fileURLWithPath: try #require(moved.output.first)).deletingLastPathComponent()
        #expect(try Data(contentsOf: kept.appending(path: "queue.sqlite")) == damaged)
        #expect(try await queue.states().isEmpty)
        // Only the header of the file is damaged, so no request is lost.
        #expect(moved.ending == .exited(0), "\(moved)")
        #expect(try await queue.run("import", moved.output[0]).ending == .exited(0))
        #expect(try await queue.states() == ["req-0": "pending", "req-1": "pending"])
    }

    @Test(arguments: ["verify", "list", "export"])
    func `a missing database is reported, and no command creates an empty one`(command: String) async throws {
        let queue = try await QueueFixture(.directory, count: 2)
        let file = queue.directory.file("state/queue.sqlite")
        try shell("mv \(file) \(queue.directory.file("kept"))")
        for log in ["", "not empty"] {
            if !log.isEmpty { try Data(log.utf8).write(to: URL(filePath: "\(file)-wal")) }
            let result = try await queue.run(command)
            #expect(result.ending == .exited(78) && result.output.isEmpty, "\(result)")
            #expect(result.errors.first?.hasSuffix("queue.sqlite` is missing") == true, "\(result.errors)")
            #expect(access(file, F_OK) != 0)
        }
        try shell("rm \(file)-wal; mv \(queue.directory.file("kept")) \(file)")
        #expect(try await queue.run("verify").ending == .exited(0))
    }

    @Test func `a store without its database is set aside by the command that the error names`() async throws
    {
        let queue = try await QueueFixture(.directory, count: 2)
        let state = queue.directory.file("state")
        try shell("rm \(state)/queue.sqlite")
        let command = "`netwatch queue verify --set-aside --state-dir '\(state)'`"
        let listed = try await queue.run("list")
        #expect(listed.errors.joined().contains(command), "\(listed.errors)")
        let moved = try await queue.run("verify", "--set-aside")
        #expect(moved.ending == .exited(1) && moved.output.count == 1, "\(moved)")
        #expect(moved.errors.contains { $0.hasSuffix("the database file is missing") }, "\(moved.errors)")
        #expect(try await queue.states().isEmpty)
    }

    @Test func `an interrupted move of a damaged store is reported, and can be completed`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let state = queue.directory.file("state")
        let target = "\(state)/damaged-before"
        try shell("mkdir \(target) && mv \(state)/queue.sqlite \(target)")
        try Data("why\n\(target)\n".utf8).write(to: URL(filePath: "\(state)/queue.damaged"))
        for command in ["list", "verify"] {
            try shell("rm -f \(state)/queue.sqlite")
            let result = try await queue.run(command)
            #expect(result.ending == .exited(78), "\(result)")
            #expect(result.errors.joined().contains("`netwatch queue verify --set-aside`"), "\(result)")
        }
        let moved = try await queue.run("verify", "--set-aside")
        #expect(moved.output.first?.hasPrefix("\(target)/") == true, "\(moved)")
        #expect(try await queue.states().isEmpty)
    }

    @Test func `a store whose database is not damaged is not set aside, even if a body is missing`()
        async throws
    {
        let queue = try await QueueFixture(.directory, count: 2)
        let body = try queue.directory.write([UInt8](repeating: 120, count: 100_000), to: "body")
        let service = try await RunningService(in: queue.directory)
        try await service.keep("http://127.0.0.1:1/", "-T", body)
        try await service.stop()
        try shell("rm \(queue.directory.file("state"))/spool/*")
        let moved = try await queue.run("verify", "--set-aside")
        #expect(moved.ending == .exited(0) && moved.output.isEmpty, "\(moved)")
        #expect(moved.errors.last?.hasPrefix("the database is not damaged, so nothing was moved") == true)
        #expect(try await queue.states().count == 3)
        #expect(try await queue.run("verify").ending == .exited(1))
    }
}

/// Permission to open a queue's directory.
@Suite(.serialized, .timeLimit(.minutes(5))) struct QueueAccessTests {
    @Test func `a running service is used even if only its directory is given`() async throws {
        let queue = try await QueueFixture(.service, count: 1)
        let listed = try await Command.run(
            "queue",
            "list",
            "--state-dir",
            queue.directory.file("state"),
            "--socket",
            queue.directory.file("socket")
        )
        #expect(listed.ending == .exited(0) && listed.output.count == 1, "\(listed.errors)")
    }

    @Test func `the process that has locked the store is reported`() async throws {
        let queue = try await QueueFixture(.service, count: 1)
        let pid = try #require(queue.service).process.pid
        let listed = try await Command.run(
            "queue",
            "list",
            "--state-dir",
            queue.directory.file("state"),
            "--socket",
            "/no/such/socket"
        )
        #expect(listed.ending == .exited(2))
        #expect(listed.errors.first?.contains("\(pid)") == true, "\(listed.errors)")
    }

    @Test func `a store that is in use is not set aside, and the error says which process to stop`()
        async throws
    {
        let queue = try await QueueFixture(.service, count: 1)
        let pid = try #require(queue.service).process.pid
        let state = queue.directory.file("state")
        let refused = try await Command.run("queue", "verify", "--set-aside", "--state-dir", state)
        #expect(
            refused.ending == .exited(2)
                && refused.errors.last?.hasPrefix("hint: stop process \(pid), and repeat the command")
                    == true,
            "\(refused.errors)"
        )
    }

    @Test(arguments: QueueFixture.Backend.allCases)
    func `a file that cannot be read is a wrong argument`(backend: QueueFixture.Backend) async throws {
        let queue = try await QueueFixture(backend, count: 1)
        // This file can be opened, but address 0 cannot be read.
        let refused = try await queue.run("import", "/proc/self/mem")
        #expect(
            refused.ending == .exited(64) && refused.errors.first?.contains("/proc/self/mem") == true,
            "\(refused.errors)"
        )
        #expect(try await queue.states() == ["req-0": "pending"])
    }

    @Test func `without a service, the default directory is opened`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let environment = [
            "STATE_DIRECTORY": queue.directory.file("state"), "RUNTIME_DIRECTORY": queue.directory.path,
            "NETWATCH_SOCKET": "",
        ]
        let listed = try await Command.run("queue", "list", environment: environment)
        #expect(listed.ending == .exited(0) && listed.output.count == 1, "\(listed.errors)")
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "becoming another user needs root"))
    func `another user's store is rejected, naming its owner`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let list = [Command.path, "queue", "list", "--state-dir", queue.directory.file("state")]
        try shell("chmod 755 \(queue.directory.path)")
        let other = try Subprocess("/usr/bin/setpriv", ["--reuid=65534", "--clear-groups"] + list)
        let outcome = try await other.outcome()
        #expect(outcome.ending == .exited(77))
        #expect(outcome.errors.first?.contains("`root`") == true, "\(outcome.errors)")
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "becoming another user needs root"))
    func `root opens another user's store as its owner, and leaves no file of root`() async throws {
        let queue = try await QueueFixture(.directory, count: 2)
        let state = queue.directory.file("state")
        try shell("chmod 755 \(queue.directory.path); chown -R 65534:65533 \(state)")
        #expect(try await queue.run("list").output.count == 2)
        let request = try Command.json(
            try #require(try await queue.run("list", "--format", "json").output.first)
        )
        let id = try #require(request["id"] as? String)
        #expect(try await queue.run("hold", id).ending == .exited(0))
        #expect(try await queue.run("release", id).ending == .exited(0))
        #expect(try await queue.run("export").ending == .exited(0))
        #expect(try await queue.run("verify").ending == .exited(0))
        #expect(try shell("find \(state) ! -uid 65534 -o ! -gid 65533") == "")
        // The queue's owner may not enter the parent directory, as with the state directory of a systemd dynamic user.
        try shell("chmod 700 \(queue.directory.path)")
        let locked = try await queue.run("list")
        #expect(locked.ending == .exited(77))
        #expect(locked.errors.first?.contains("as its owner, the user `nobody`") == true, "\(locked.errors)")
    }
}

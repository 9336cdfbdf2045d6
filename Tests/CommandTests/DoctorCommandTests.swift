internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct DoctorCommandTests {
    private let directory = try! ScratchDirectory()

    /// Runs `netwatch doctor` and returns its findings by check.
    private func doctor(
        _ arguments: [String],
        in namespace: NetworkNamespace? = nil,
        resolvingBy files: ResolverFiles? = nil
    ) async throws -> (ending: Subprocess.Ending, findings: [String: [[String: Any]]]) {
        let run = try await Command.start(
            ["doctor", "--format", "json"] + arguments,
            in: namespace,
            resolvingBy: files
        ).outcome()
        let report = try Command.json(try #require(run.output.first, "\(run.errors)"))
        #expect(run.output.count == 1 && run.errors == [] && report["type"] as? String == "doctor")
        let checks = try #require(report["checks"] as? [[String: Any]])
        return (run.ending, Dictionary(grouping: checks) { $0["check"] as? String ?? "" })
    }

    private func results(_ findings: [[String: Any]]?) -> [String] {
        findings?.compactMap { $0["result"] as? String } ?? []
    }

    private func message(_ findings: [[String: Any]]?) -> String {
        findings?.first?["message"] as? String ?? ""
    }

    private func messages(_ findings: [[String: Any]]?) -> [String] {
        findings?.compactMap { $0["message"] as? String } ?? []
    }

    /// Arguments that name a service that does not run and a store that does not exist.
    private var nothing: [String] {
        ["--socket", directory.file("socket"), "--state-dir", directory.file("state")]
    }

    @Test func `without a service, a store and a network there are warnings, but no problems`() async throws {
        let namespace = try NetworkNamespace(hasLoopback: false)
        let (ending, findings) = try await doctor(nothing, in: namespace)
        #expect(ending == .exited(0), "\(findings)")
        #expect(results(findings["netlink"]) == ["ok"] && results(findings["configuration"]) == ["ok"])
        #expect(message(findings["netlink"]) == "netlink is available, with 1 interface")
        #expect(message(findings["transport"]).hasPrefix("libcurl "))
        for check in ["loopback", "service", "store"] {
            #expect(results(findings[check]) == ["warning"], "\(check)")
            #expect(findings[check]?.first?["advice"] is String, "\(check)")
        }
        #expect(findings["credentials"] == nil && findings["host"] == nil)
        #expect(!FileManager.default.fileExists(atPath: directory.file("state")))
        try namespace.ip("link set lo up")
        #expect(results(try await doctor(nothing, in: namespace).findings["loopback"]) == ["ok"])
    }

    @Test func `a service that does not run and whose store is not known is a problem`() async throws {
        let (ending, findings) = try await doctor(Array(nothing.prefix(2)))
        #expect(ending == .exited(1) && results(findings["service"]) == ["warning"], "\(findings)")
        #expect(
            results(findings["store"]) == ["problem"] && message(findings["store"]).hasPrefix("not checked: ")
        )
    }

    @Test func `text has one line per check, in a fixed order`() async throws {
        let run = try await Command.start(["doctor"] + nothing).outcome()
        #expect(run.ending == .exited(0) && run.errors == [])
        #expect(
            run.output.compactMap { $0.split(separator: " ").first } == [
                "netlink", "transport", "resolver", "loopback", "clock", "configuration", "service", "store",
            ]
        )
        let socket = directory.file("socket")
        #expect(
            run.output.contains(
                "service        warning  not running (no process listens on `\(socket)`); "
                    + "`netwatch serve --socket '\(socket)'` starts the service"
            ),
            "\(run.output)"
        )
    }

    @Test func `a running service reports its version and the store`() async throws {
        let service = try await RunningService(in: directory)
        let (ending, findings) = try await doctor(["--socket", service.socket])
        #expect(ending == .exited(0))
        let running = message(findings["service"])
        #expect(running.hasPrefix("running, pid \(service.process.pid), version "), "\(running)")
        #expect(running.hasSuffix("; this user may submit requests"))
        #expect(message(findings["store"]).hasPrefix("in use by the service; database "))
        #expect(results(findings["store"]) == ["ok"])
    }

    @Test func `a refused reload is a warning until the next reload succeeds`() async throws {
        let file = try directory.write(Array("[queue]\n".utf8), to: "netwatch.toml")
        let service = try await RunningService(in: directory, options: ["--config", file])
        func findings(afterReloading text: String) async throws -> [[String: Any]]? {
            _ = try directory.write(Array(text.utf8), to: "netwatch.toml")
            _ = try await service.curl("/v1/reload -X POST")
            return try await doctor(["--socket", service.socket, "--config", file]).findings["service"]
        }
        let refused = try await findings(afterReloading: "[queue]\ninflght = 1\n")
        #expect(results(refused) == ["ok", "warning"])
        #expect(
            (refused?.last?["message"] as? String)?.hasPrefix("the service refused its configuration at ")
                == true
        )
        #expect(results(try await findings(afterReloading: "[queue]\n")) == ["ok"])
    }

    @Test
    func `values that the service does not use, and another file than that of the service, are warnings`()
        async throws
    {
        let file = try directory.write(Array("[queue]\ninflight = 3\n".utf8), to: "netwatch.toml")
        let service = try await RunningService(in: directory, options: ["--config", file])
        let socket = ["--socket", service.socket]
        let other = try await doctor(socket + ["--config", try directory.write([], to: "other.toml")])
        #expect(other.ending == .exited(0) && results(other.findings["service"]) == ["ok", "warning"])
        #expect(
            messages(other.findings["service"]).last
                == "the service reads `\(file)`, and this command has checked `\(directory.file("other.toml"))`"
        )
        #expect(results(try await doctor(socket + ["--config", file]).findings["service"]) == ["ok"])
        let text = "[web]\nlisten = \"127.0.0.1:9\"\n[queue]\ninflight = 4\n[[host]]\nroute = \"127.0.0.1\"\n"
        try directory.write(Array(text.utf8), to: "netwatch.toml")
        func differences() async throws -> [String] {
            let findings =
                try await doctor(socket + ["--config", file]).findings["service"]?.dropFirst() ?? []
            #expect(results(Array(findings)).allSatisfy { $0 == "warning" })
            return findings.map { "\($0["message"] ?? ""); \($0["advice"] ?? "")" }
        }
        let words = "the service uses other values than its configuration files have: "
        let restart = "\(words)`web.listen`; restart the service"
        #expect(
            try await differences() == ["\(words)`queue.inflight`, `host`; reload the service", restart]
        )
        _ = try await service.curl("/v1/reload -X POST")
        #expect(try await differences() == [restart])
    }

    @Test func `a fault that only the service has, because of a variable, is a problem`() async throws {
        let file = try directory.write([], to: "netwatch.toml")
        let service = try await RunningService(in: directory, options: ["--config", file])
        try directory.write(Array("[queue]\nbackoff-base = \"2h\"\n".utf8), to: "netwatch.toml")
        let (ending, findings) = try await doctor(["--socket", service.socket, "--config", file])
        // The check of the configuration has reported it.
        #expect(ending == .exited(1) && results(findings["service"]) == ["ok"], "\(findings)")
        let own = try await Command.start(
            ["doctor", "--format", "json", "--socket", service.socket, "--config", file],
            environment: ["NETWATCH_QUEUE_BACKOFF_CAP": "\"3h\""]
        ).outcome()
        let report = try Command.json(try #require(own.output.first))
        let checks = (report["checks"] as? [[String: Any]] ?? []).filter {
            $0["check"] as? String == "service"
        }
        #expect(own.ending == .exited(1) && results(checks) == ["ok", "problem"], "\(own)")
        #expect(
            messages(checks).last?.hasPrefix(
                "the service cannot use its configuration files now: \(file):2:1: "
            )
                == true
        )
    }

    @Test func `name servers that do not answer, or cannot, are a warning`() async throws {
        let testbed = try VethTestbed()
        let server = try ScriptedNameServer(in: testbed.far)
        let silent = " (does not answer), so host names cannot be looked up"
        let failing = " (answers SERVFAIL), so host names cannot be looked up"
        let cases: [(ScriptedNameServer.Record?, String)] = [
            (nil, ""), (.silence, silent), (.failure, failing),
        ]
        for (record, fault) in cases {
            // The name of the root zone.
            server.set("", record)
            let (ending, findings) = try await doctor(nothing, in: testbed.near, resolvingBy: ResolverFiles())
            #expect(ending == .exited(0), "\(findings)")
            #expect(message(findings["resolver"]) == "name servers: \(VethTestbed.farAddress)\(fault)")
            #expect(results(findings["resolver"]) == [fault.isEmpty ? "ok" : "warning"])
        }
    }

    @Test func `a damaged page of the store that the service uses is a problem`() async throws {
        let body = try directory.write([UInt8](repeating: 120, count: 60_000), to: "body")
        let first = try await RunningService(in: directory)
        try await first.pause()
        for _ in 0..<10 { try await first.keep("http://127.0.0.1:1/", "-d", "@\(body)") }
        try await first.stop()
        let service = try await RunningService(in: directory)
        let options = ["--socket", service.socket]
        let sound = try await doctor(options).findings["store"]
        #expect(message(sound).contains("; no damage; "), "\(sound ?? [])")
        // Pages of the last body, which only its request needs.
        let file = try FileHandle(forUpdating: URL(filePath: "\(service.stateDirectory)/queue.sqlite"))
        let size = try file.seekToEnd()
        try file.seek(toOffset: size - 12 * 4096)
        try file.write(contentsOf: Data(repeating: 0xee, count: 8 * 4096))
        try file.close()
        let (ending, findings) = try await doctor(options)
        #expect(ending == .exited(1) && results(findings["store"]).first == "problem", "\(findings)")
        #expect(message(findings["store"]).hasPrefix("the database that the service uses is damaged: "))
        let advice = findings["store"]?.first?["advice"] as? String
        #expect(advice?.contains("`netwatch queue verify --set-aside`") == true)
    }

    @Test
    func
        `a hook without its program or its credential is a warning, and so is a push without its credential`()
        async throws
    {
        let text = """
            [metrics]
            push-url = "http://127.0.0.1:1/"
            push-credential = "missing"
            [[hook]]
            program = "/nonexistent/program"
            [[hook]]
            webhook = "http://127.0.0.1:1/"
            credential = "missing"
            """
        let file = try directory.write(Array(text.utf8), to: "netwatch.toml")
        try #require(mkdir(directory.file("credentials"), 0o700) == 0)
        let options = ["--config", file, "--credentials", directory.file("credentials")]
        let (ending, findings) = try await doctor(nothing + options)
        #expect(
            ending == .exited(0)
                && results(findings["configuration"]) == ["ok", "warning", "warning", "warning"]
        )
        #expect(
            findings["configuration"]?.dropFirst().compactMap { $0["message"] as? String } == [
                "the program `/nonexistent/program` of a hook cannot be executed: No such file or directory",
                "a hook uses the credential `missing`, which does not exist",
                "the push of metrics uses the credential `missing`, which does not exist",
            ]
        )
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "only root can give a file to another user"))
    func `root checks credentials for the owner of the queue's directory, as with config check`() async throws
    {
        let (state, credentials) = (directory.file("state"), directory.file("credentials"))
        try #require(
            mkdir(state, 0o700) == 0 && chown(state, 12345, 0) == 0 && mkdir(credentials, 0o755) == 0
        )
        let text = "type: bearer\norigins: https://a.example\nvalue: t\n"
        let file = try directory.write(Array(text.utf8), to: "credentials/api")
        let configuration = try directory.write([], to: "netwatch.toml")
        let options = ["--config", configuration, "--credentials", credentials]
        for (owner, isAccepted) in [(uid_t(12345), true), (54321, false)] {
            try #require(chmod(file, 0o600) == 0 && chown(file, owner, 0) == 0)
            let check = try await Command.start(
                ["config", "check"] + options,
                environment: ["STATE_DIRECTORY": state]
            ).outcome()
            #expect(check.ending == .exited(isAccepted ? 0 : 78), "\(check.errors)")
            let socket = ["--socket", directory.file("socket"), "--state-dir", state]
            let findings = try await doctor(options + socket).findings
            #expect(results(findings["credentials"]) == [isAccepted ? "ok" : "problem"], "\(findings)")
        }
    }

    @Test func `the credentials of hooks are not judged if their directory cannot be read`() async throws {
        let text = "[[hook]]\nwebhook = \"http://127.0.0.1:1/\"\ncredential = \"any\"\n"
        let file = try directory.write(Array(text.utf8), to: "netwatch.toml")
        let options = ["--config", file, "--credentials", directory.file("missing")]
        let (_, findings) = try await doctor(nothing + options)
        #expect(results(findings["configuration"]) == ["ok"])
        #expect(results(findings["credentials"]) == ["problem"])
    }

    @Test func `a pause, and held and dead requests are warnings`() async throws {
        let service = try await RunningService(in: directory)
        let options = ["--socket", service.socket]
        #expect(results(try await doctor(options).findings["store"]) == ["ok"])
        try await service.pause()
        let paused = try await doctor(options).findings["store"]
        #expect(results(paused) == ["ok", "warning"])
        #expect(paused?.last?["message"] as? String == "the queue is paused, so it sends nothing")
        try await service.keep("http://127.0.0.1:1/", "--id", "a")
        #expect(try await service.run("queue", "hold", "a").ending == .exited(0))
        let findings = try await doctor(options).findings["store"]
        #expect(results(findings) == ["ok", "warning", "warning"])
        #expect(findings?.last?["message"] as? String == "requests in the queue: 1 held")
    }

    @Test func `a damaged store is a problem, and nothing in it is changed`() async throws {
        let queue = try await QueueFixture(.directory, count: 2)
        let arguments = ["--state-dir", queue.directory.file("state"), "--socket", directory.file("none")]
        let sound = try await doctor(arguments)
        #expect(sound.ending == .exited(0) && results(sound.findings["store"]) == ["ok"], "\(sound)")
        let file = URL(filePath: queue.directory.file("state/queue.sqlite"))
        let handle = try FileHandle(forUpdating: file)
        try handle.write(contentsOf: Data("no database".utf8))
        try handle.close()
        let damaged = try Data(contentsOf: file)
        let (ending, findings) = try await doctor(arguments)
        #expect(ending == .exited(1) && results(findings["store"]) == ["problem"])
        #expect(message(findings["store"]).contains("is damaged"), "\(findings)")
        #expect((findings["store"]?.first?["advice"] as? String)?.contains("--set-aside") == true)
        #expect(try Data(contentsOf: file) == damaged)
    }

    @Test func `a missing database is a problem, and is not created`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        try shell("rm \(queue.directory.file("state/queue.sqlite"))")
        let arguments = ["--state-dir", queue.directory.file("state"), "--socket", directory.file("none")]
        let (ending, findings) = try await doctor(arguments)
        #expect(ending == .exited(1) && results(findings["store"]) == ["problem"])
        #expect(message(findings["store"]).hasSuffix("queue.sqlite` is missing"), "\(findings)")
        #expect(access(queue.directory.file("state/queue.sqlite"), F_OK) != 0)
    }

    @Test func `a store that other users can access is a warning, and its mode is kept`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let state = queue.directory.file("state")
        try #require(chmod(state, 0o755) == 0)
        let (ending, findings) = try await doctor(["--state-dir", state, "--socket", directory.file("none")])
        #expect(ending == .exited(0) && results(findings["store"]) == ["ok", "warning"])
        var status = stat()
        #expect(stat(state, &status) == 0 && status.st_mode & 0o777 == 0o755)
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "only root can change the owner of a file"))
    func `a database of another owner is a problem that chown corrects`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let state = queue.directory.file("state")
        try shell("chmod 755 \(queue.directory.path); chown -R 65534:65533 \(state)")
        try shell("chown 0:0 \(state)/queue.sqlite; chmod 600 \(state)/queue.sqlite")
        let (ending, findings) = try await doctor(["--state-dir", state, "--socket", directory.file("none")])
        #expect(ending == .exited(1) && results(findings["store"]) == ["problem"], "\(findings)")
        let advice = findings["store"]?.first?["advice"] as? String
        #expect(advice?.contains("chown(1)") == true, "\(findings)")
    }

    @Test func `every fault of the configuration and of a credential is a problem`() async throws {
        let file = try directory.write(
            Array("[queue]\ninflight = 0\ninflght = 1\n".utf8),
            to: "netwatch.toml"
        )
        try #require(mkdir(directory.file("credentials"), 0o700) == 0)
        let credential = try directory.write(Array("nonsense\n".utf8), to: "credentials/api")
        try #require(chmod(credential, 0o600) == 0)
        let options = ["--config", file, "--credentials", directory.file("credentials")]
        let (ending, findings) = try await doctor(nothing + options)
        #expect(ending == .exited(1))
        #expect(results(findings["configuration"]) == ["problem", "problem"])
        #expect(message(findings["configuration"]).hasPrefix("\(file):2:"))
        #expect(findings["configuration"]?.map { $0["advice"] is String } == [false, true])
        #expect(results(findings["credentials"]) == ["problem"], "\(findings)")
        _ = try directory.write(Array("[queue]\n".utf8), to: "netwatch.toml")
        try #require(rename(credential, directory.file("credentials/a b")) == 0)
        let named = try await doctor(nothing + options)
        #expect(named.ending == .exited(1) && results(named.findings["configuration"]) == ["ok"])
        #expect(message(named.findings["credentials"]).hasSuffix("; rename or remove it"))
        #expect(named.findings["credentials"]?.first?["advice"] == nil)
        let missing = try await doctor(nothing + ["--credentials", directory.file("missing")])
        #expect(missing.ending == .exited(1) && results(missing.findings["credentials"]) == ["problem"])
    }

    @Test func `hosts are only probed if they are named`() async throws {
        let server = try ScriptedServer()
        let port = try #require(server.url.split(separator: ":").last.flatMap { UInt16($0) })
        let host = ["--host", "127.0.0.1", "--probe", "tcp:\(port)"]
        let up = try await doctor(nothing + host)
        #expect(up.ending == .exited(0) && results(up.findings["host"]) == ["ok"], "\(up.findings)")
        #expect(message(up.findings["host"]).hasPrefix("`127.0.0.1` is up (this machine, "), "\(up.findings)")
        let down = try await doctor(nothing + ["--host", "127.0.0.1", "--probe", "tcp:1"])
        #expect(down.ending == .exited(1) && results(down.findings["host"]) == ["problem"])
        let usage = try await Command.run("doctor", "--probe", "tcp:1")
        #expect(usage.ending == .exited(64))
    }

    @Test func `an invalid host ends the command before it contacts the service`() async throws {
        let socket = directory.file("socket")
        let service = try ScriptedServer(unixPath: socket)
        let run = try await Command.run("doctor", "--host", "a b", "--socket", socket)
        #expect(run.ending == .exited(64) && run.output.isEmpty, "\(run)")
        #expect(service.connectionCount == 0)
    }
}

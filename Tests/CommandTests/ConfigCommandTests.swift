internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct ConfigCommandTests {
    private let directory = try! ScratchDirectory()

    private func write(_ text: String) throws -> String {
        try directory.write(Array(text.utf8), to: "netwatch.toml")
    }

    @Test func `a correct file is named, and a wrong one ends with 78 and all faults`() async throws {
        let file = try write("[queue]\ninflight = 3\n")
        let good = try await Command.run("config", "check", "--config", file)
        #expect(good.ending == .exited(0) && good.output == ["no faults: \(file)"])
        #expect(good.errors == [])
        _ = try write("[queue]\ninflight = 0\ninflght = 1\n")
        for arguments in [["config", "check"], ["config", "show"], ["serve"]] {
            let bad = try await Command.start(arguments + ["--config", file]).outcome()
            #expect(bad.ending == .exited(78), "\(arguments)")
            #expect(bad.output == [])
            #expect(
                bad.errors.prefix(2).map { $0.hasPrefix("error: \(file):") } == [true, true],
                "\(bad.errors)"
            )
        }
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "only root can change the owner of a file"))
    func `a default file that the user of the service cannot read is a fault for root`() async throws {
        try #require(chmod(directory.path, 0o755) == 0)
        let (file, state) = (try write("[queue]\n"), directory.file("state"))
        try #require(mkdir(state, 0o700) == 0)
        try #require(chown(state, 60_001, 60_001) == 0)
        let environment = ["CONFIGURATION_DIRECTORY": directory.path, "STATE_DIRECTORY": state]
        let modes: [(mode: mode_t, isReadable: Bool)] = [(0o644, true), (0o640, false), (0o600, false)]
        for (mode, isReadable) in modes {
            try #require(chmod(file, mode) == 0)
            let checked = try await Command.run("config", "check", environment: environment)
            #expect(checked.ending == .exited(isReadable ? 0 : 78), "\(mode): \(checked)")
            let fault = "\(file): the user 60001, who runs the service, cannot read it: Permission denied"
            #expect(checked.errors == (isReadable ? [] : ["error: \(fault)"]))
            let doctor = try await Command.run("doctor", environment: environment)
            #expect(doctor.output.contains("configuration  problem  \(fault)") == !isReadable, "\(doctor)")
        }
        let named = try await Command.run("config", "check", file, environment: environment)
        #expect(named.ending == .exited(0))
    }

    @Test func `the examples of the documentation have no faults`() async throws {
        let examples = try DocumentationPage.all().flatMap { $0.codeBlocks(in: "toml") }
        #expect(!examples.isEmpty)
        for example in examples {
            let checked = try await Command.run("config", "check", try write(example.text))
            #expect(checked.ending == .exited(0), "\(example.text)\n\(checked.errors)")
        }
    }

    @Test func `the file may be an argument, and the faults are in the order of their lines`() async throws {
        let file = try write(
            """
            [[host]]
            tcp = "a"

            [queue]
            backoff-base = "2m"
            backoff-cap = "1m"
            inflght = 1
            """
        )
        let bad = try await Command.run("config", "check", file)
        #expect(bad.ending == .exited(78))
        let places = bad.errors.compactMap { $0.firstMatch(of: /^error: .*\.toml:(\d+):\d+:/)?.1 }
        #expect(places == ["2", "6", "7"], "\(bad.errors)")
        let both = try await Command.run("config", "check", file, "--config", file)
        #expect(both.ending == .exited(64))
    }

    @Test func `with --credentials, faults of credential files are listed with those of the configuration`()
        async throws
    {
        let credentials = directory.file("credentials")
        try #require(mkdir(credentials, 0o700) == 0)
        func check(_ text: String) async throws -> Subprocess.Outcome {
            try await Command.run("config", "check", try write(text), "--credentials", credentials)
        }
        for (name, text) in [
            ("good", "type: bearer\norigins: https://a.example\nvalue: x\n"), ("bad", "nonsense\n"),
        ] {
            let path = try directory.write(Array(text.utf8), to: "credentials/\(name)")
            try #require(chmod(path, 0o600) == 0)
        }
        let faulty = try await check("[queue]\n")
        #expect(faulty.ending == .exited(78) && faulty.output == [])
        #expect(faulty.errors.count == 1 && faulty.errors[0].contains("`bad`"), "\(faulty.errors)")
        let both = try await check("[queue]\ninflight = 0\n")
        #expect(both.ending == .exited(78))
        #expect(both.errors.filter { $0.hasPrefix("error: ") }.count == 2, "\(both.errors)")
        try #require(unlink(credentials + "/bad") == 0)
        let good = try await check("[queue]\n")
        #expect(good.ending == .exited(0), "\(good.errors)")
        #expect(good.output.last == "no faults: 1 credential in `\(credentials)`")
        try #require(chmod(credentials, 0o777) == 0)
        #expect(try await check("[queue]\n").ending == .exited(78))
    }

    @Test func `without a file, the files that were looked for are named`() async throws {
        let checked = try await Command.run(
            "config",
            "check",
            environment: ["CONFIGURATION_DIRECTORY": directory.path]
        )
        let file = directory.file("netwatch.toml")
        #expect(checked.ending == .exited(0))
        #expect(checked.output == ["there is no file `\(file)` or `\(file).d/*.toml`, so the defaults apply"])
    }

    @Test func `the keys are only mentioned if a file could be read`() async throws {
        let hint = "hint: `netwatch config default` prints all keys with their accepted values"
        let missing = try await Command.run("config", "check", directory.file("missing.toml"))
        #expect(missing.ending == .exited(78))
        let errors = missing.errors
        #expect(errors.count == 1 && errors.first?.contains("cannot be read") == true, "\(errors)")
        let wrong = try await Command.run("config", "check", try write("[queue]\ninflght = 1\n"))
        #expect(wrong.ending == .exited(78) && wrong.errors.last == hint, "\(wrong.errors)")
    }

    @Test func `the default configuration is the one of the package`() async throws {
        let printed = try await Command.run("config", "default")
        let file = try Repository.text("systemd/netwatch.toml")
        #expect(printed.output.joined(separator: "\n") + "\n" == file)
    }

    @Test func `the documentation has a row for every key`() async throws {
        let page = try Repository.text("docs/configuration.md")
        var table = "", missing: [String] = [], count = 0
        for line in try await Command.run("config", "default").output {
            if line.hasPrefix("[") { table = String(line.dropFirst().dropLast()) }
            guard !line.hasPrefix("##"), !line.hasPrefix("#[["),
                let match = line.firstMatch(of: /^#([a-z-]+) = (.*)$/)
            else { continue }
            // The keys after the tables are those of the examples of hosts.
            if match.1 == "name" { break }
            count += 1
            let row = "| `\(table).\(match.1)` | `\(match.2)` |", without = "| `\(table).\(match.1)` | none |"
            if !page.contains(row), !page.contains(without) { missing.append(row) }
        }
        #expect(count > 20)
        #expect(missing == [])
    }

    @Test func `a variable replaces the value of the file, and an option that of the variable`() async throws
    {
        let file = try write("[service]\nlog-level = \"error\"\n")
        let cases: [(level: String, options: [String])] = [("info", []), ("error", ["--log-level", "info"])]
        for (level, options) in cases {
            let service = try await RunningService(
                in: directory,
                environment: ["NETWATCH_SERVICE_LOG_LEVEL": "\"\(level)\""],
                options: ["--config", file] + options
            )
            // The line `ready` has the level `info`. Waiting for it was the test.
            service.process.signal(SIGTERM)
            #expect(try await service.process.end() == .exited(0))
        }
    }

    @Test func `config check names the variables that it has read, and refuses wrong ones`() async throws {
        let file = try write("")
        let good = try await Command.run(
            "config",
            "check",
            file,
            environment: ["NETWATCH_QUEUE_INFLIGHT": "3"]
        )
        #expect(good.ending == .exited(0) && good.output == ["no faults: \(file), NETWATCH_QUEUE_INFLIGHT"])
        let environment = ["NETWATCH_QUEUE_INFLIGHT": "0"]
        let bad = try await Command.run("config", "check", file, environment: environment)
        #expect(bad.ending == .exited(78))
        let fault = "NETWATCH_QUEUE_INFLIGHT: `queue.inflight` is 0; it must be an integer from 1 to 65536"
        #expect(bad.errors == ["error: \(fault)"])
    }

    @Test func `options replace the values of the file`() async throws {
        let file = try write("[service]\nlog-level = \"error\"\n")
        let service = try await RunningService(
            in: directory,
            options: ["--config", file, "--log-level", "info"]
        )
        // The line `ready` has the level `info`. Waiting for it was the test.
        withExtendedLifetime(service) {}
    }

    @Test func `a reload applies a correct configuration, and keeps the old one otherwise`() async throws {
        let host = "[[host]]\nname = \"NAME\"\nroute = \"127.0.0.1\"\n"
        let file = try write(host.replacing("NAME", with: "first"))
        let service = try await RunningService(in: directory, options: ["--config", file])
        try await service.hasLogged("host `first` is up")
        #expect(try await states(service) == ["first": "up"])
        _ = try write("[queue]\ninflight = 0\n" + host.replacing("NAME", with: "second"))
        service.process.signal(SIGHUP)
        try await service.hasLogged("the service keeps the old values")
        #expect(service.process.errors.values.contains { $0.contains("\(file):2:1: `queue.inflight` is 0") })
        #expect(try await states(service) == ["first": "up"])
        _ = try write("[web]\nlisten = \"127.0.0.1:9\"\n" + host.replacing("NAME", with: "second"))
        service.process.signal(SIGHUP)
        try await service.hasLogged("host `second` is up")
        #expect(try await states(service) == ["second": "up"])
        try await service.hasLogged("only when the service is restarted: `web.listen`")
    }

    @Test func `a call of the control API reloads the configuration, and returns its faults`() async throws {
        let host = "[[host]]\nname = \"db\"\nroute = \"127.0.0.1\"\n"
        let file = try write("")
        let service = try await RunningService(in: directory, options: ["--config", file])
        _ = try write("[queue]\ninflight = 5\n[web]\nlisten = \"127.0.0.1:9\"\n" + host)
        let reload = "/v1/reload -X POST"
        #expect(
            try await service.curl(reload)
                == #"{"hosts":1,"replaced_keys":[],"restart_keys":["web.listen"],"v":1}"#
        )
        #expect(try await states(service).keys.sorted() == ["db"])
        _ = try write("[queue]\ninflight = 0\n")
        let refused = try Command.json(try await service.curl(reload))
        #expect(refused["code"] as? String == "configuration_refused")
        #expect((refused["detail"] as? String)?.hasPrefix("\(file):2:1: `queue.inflight` is 0") == true)
        #expect(try await states(service).keys.sorted() == ["db"])
    }

    @Test func `a refusal of a lane names the key of the limit`() async throws {
        let file = try write("[queue.limits]\nrequests = 2\nlane-share = 0.5\n")
        let service = try await RunningService(in: directory, options: ["--config", file])
        try await service.pause()
        try await service.keep("http://127.0.0.1:1/")
        let refused = try await service.run("send", "--queue", "always", "http://127.0.0.1:1/")
        #expect(
            refused.errors.first
                == "error: the lane has 1 requests; its limit is 1, which is 50 % of `queue.limits.requests`"
        )
    }

    @Test func `a reload names the changed keys that variables replace`() async throws {
        let file = try write("[queue]\nttl = \"1d\"\ninflight = 3\n")
        let service = try await RunningService(
            in: directory,
            environment: ["NETWATCH_QUEUE_TTL": "\"2d\"", "NETWATCH_QUEUE_INFLIGHT": "9"],
            options: ["--config", file]
        )
        _ = try write("[queue]\nttl = \"3d\"\ninflight = 3\n")
        #expect(
            try await service.curl("/v1/reload -X POST")
                == #"{"hosts":0,"replaced_keys":["queue.ttl"],"restart_keys":[],"v":1}"#
        )
        try await service.hasLogged("variables replace them: `queue.ttl` (`NETWATCH_QUEUE_TTL`)")
    }

    @Test func `a reload applies the limits of the queue and the defaults of requests`() async throws {
        let file = try write("")
        let service = try await RunningService(in: directory, options: ["--config", file])
        func send(_ id: String) async throws -> [String: Any] {
            let body = #"{"url":"http://127.0.0.1:1/","queue":"always","id":"\#(id)"}"#
            return try Command.json(try await service.curl("/v1/requests -d '\(body)'"))
        }
        #expect(try await send("first")["state"] as? String == "queued")
        _ = try write(
            "[queue]\nconnect-timeout = \"2s\"\n[queue.limits]\nrequests = 2\nlane-share = 1\n"
        )
        #expect(
            try await service.curl("/v1/reload -X POST")
                == #"{"hosts":0,"replaced_keys":[],"restart_keys":[],"v":1}"#
        )
        #expect(try await send("second")["state"] as? String == "queued")
        #expect(try await send("third")["code"] as? String == "queue_full")
        #expect(try await service.details(of: "first")["connect_timeout_seconds"] as? Double == 15)
        #expect(try await service.details(of: "second")["connect_timeout_seconds"] as? Double == 2)
    }

    @Test func `a reload applies the rates, the numbers of requests in flight, the weights and the backoff`()
        async throws
    {
        let server = try ScriptedServer()
        let file = try write("[queue]\nrates = [\"1/h\"]\n")
        let service = try await RunningService(in: directory, options: ["--config", file])
        for path in ["/first", "/second"] { try await service.keep(server.url + path) }
        await server.requests(atLeast: 1)
        _ = try write(
            "[queue]\nrates = []\ninflight = 5\nlane-weights = { bulk = 2 }\nbackoff-base = \"1s\"\n"
        )
        #expect(
            try await service.curl("/v1/reload -X POST")
                == #"{"hosts":0,"replaced_keys":[],"restart_keys":[],"v":1}"#
        )
        #expect(await server.requests(atLeast: 2).map(\.target) == ["/first", "/second"])
    }

    private func states(_ service: RunningService) async throws -> [String: String] {
        let outcome = try await service.run("history", "--format", "json")
        #expect(outcome.ending == .exited(0), "\(outcome.errors)")
        let names = try outcome.output.map { try Command.json($0)["name"] as? String ?? "" }
        var states: [String: String] = [:]
        for name in names {
            let text = try await service.run("history", name)
            states[name] = text.output.first?.split(separator: " ").dropFirst().first.map {
                String($0.prefix { $0 != "," })
            }
        }
        return states
    }

    @Test func `SIGUSR1 and SIGUSR2 do not end the service`() async throws {
        let service = try await RunningService(in: directory)
        service.process.signal(SIGUSR1)
        service.process.signal(SIGUSR2)
        #expect(try await service.run("queue", "list").ending == .exited(0))
        service.process.signal(SIGTERM)
        #expect(try await service.process.end() == .exited(0))
    }

    @Test func `the service reports its progress to the watchdog`() async throws {
        let manager = try NotifySocket(directory.file("notify"))
        let service = try await RunningService(
            in: directory,
            environment: ["NOTIFY_SOCKET": directory.file("notify"), "WATCHDOG_USEC": "300000"]
        )
        var messages: [String] = []
        while messages.count(where: { $0 == "WATCHDOG=1" }) < 3 { messages.append(try manager.receive()) }
        #expect(messages.contains { $0.hasPrefix("READY=1") })
        withExtendedLifetime(service) {}
    }

    @Test func `the service manager is told about a reload`() async throws {
        let manager = try NotifySocket(directory.file("notify"))
        let service = try await RunningService(
            in: directory,
            environment: ["NOTIFY_SOCKET": directory.file("notify")]
        )
        #expect(try manager.receive().hasPrefix("READY=1\n"))
        service.process.signal(SIGHUP)
        let lines = try manager.receive().split(separator: "\n")
        #expect(lines.first == "RELOADING=1")
        #expect(lines.dropFirst().first?.hasPrefix("MONOTONIC_USEC=") == true)
        #expect(try manager.receive() == "READY=1")
    }
}

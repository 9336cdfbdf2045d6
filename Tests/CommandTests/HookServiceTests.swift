internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Hooks of the built service.
@Suite(.timeLimit(.minutes(5))) struct HookServiceTests {
    private let directory = try! ScratchDirectory()

    private func write(_ text: String) throws -> String {
        try directory.write(Array(text.utf8), to: "netwatch.toml")
    }

    private func program(_ commands: String) throws -> String {
        try directory.writeScript(commands, to: "program")
    }

    /// The configuration of a host that is down, and of a program that reports it.
    private func closedHost(reportedBy program: String) -> String {
        """
        [[host]]
        name = "closed"
        tcp = "127.0.0.1:1"
        fall = 1
        [[hook]]
        program = "\(program)"
        group-wait = "0s"
        """
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `an alert about an outage of the own link arrives after it, once, even if the service crashes`()
        async throws
    {
        let testbed = try VethTestbed()
        let server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far)
        let file = try write(
            """
            [[host]]
            name = "far"
            route = "\(VethTestbed.farAddress)"
            [[hook]]
            webhook = "\(server.url)/alert"
            causes = ["local"]
            group-wait = "0s"
            """
        )
        func start() async throws -> RunningService {
            try await RunningService(in: directory, namespace: testbed.near, options: ["--config", file])
        }
        var service = try await start()
        try await service.hasLogged("host `far` is up")
        try testbed.setCable(connected: false)
        try await service.hasLogged("host `far` is down (local)")
        // The log comes first. From the moment at which the outage is stored, the next run completes its report.
        try await until(changesIn: "\(directory.path)/state") {
            let history = try await service.run("history", "far", "--format", "json")
            let outages = try Command.json(try #require(history.output.first))["outages"] as? [Any]
            return outages?.count == 1
        }
        try await service.kill()
        service = try await start()
        try testbed.setCable(connected: true)
        let requests = await server.requests(atLeast: 2)
        let alerts = try requests.map { try Command.json(String(decoding: $0.body, as: UTF8.self)) }
        #expect(alerts.map { $0["event"] as? String } == ["down", "up"])
        #expect(alerts.allSatisfy { Self.hosts(of: $0) == ["far"] && $0["cause"] as? String == "local" })
        #expect(alerts[0]["down_since"] as? String == alerts[1]["down_since"] as? String)
        let keys = requests.flatMap { $0.values(of: "Idempotency-Key") }
        #expect(keys.count == 2 && keys[0] != keys[1])
        #expect(requests.allSatisfy { $0.method == "POST" && $0.target == "/alert" })
        try await service.stop()
        #expect(server.requests.count == 2)
    }

    private static func hosts(of alert: [String: Any]) -> [String] {
        (alert["hosts"] as? [[String: Any]] ?? []).compactMap { $0["host"] as? String }
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `a program runs after fall and rise, and its output is in the log`() async throws {
        let namespace = try NetworkNamespace()
        var server: ScriptedServer? = try ScriptedServer(in: namespace)
        let port = try #require(server?.port)
        let program = try program("echo \"to stderr: $1\" >&2; echo \"to stdout: $NETWATCH_TEXT\"")
        let file = try write(
            """
            [[host]]
            name = "db"
            tcp = "127.0.0.1:\(port)"
            interval = "1s"
            fall = 2
            rise = 1
            [[hook]]
            program = "\(program)"
            arguments = ["argument"]
            group-wait = "0s"
            """
        )
        let service = try await RunningService(
            in: directory,
            namespace: namespace,
            options: ["--config", file]
        )
        try await service.hasLogged("host `db` is up")
        server = nil
        try await service.hasLogged("to stdout: db is down (remote: connection refused) since ")
        server = try ScriptedServer(port: port, in: namespace)
        try await service.hasLogged("to stdout: db is up again; it was down (remote) since ")
        try await service.stop()
        let lines = service.process.errors.values
        #expect(lines.filter { $0 == "to stderr: argument" }.count == 2, "\(lines)")
        #expect(lines.filter { $0.hasPrefix("to stdout: ") }.count == 2, "\(lines)")
        withExtendedLifetime(server) {}
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `the next run reports a host that came up while the service stopped`() async throws {
        let namespace = try NetworkNamespace()
        let receiver = try ScriptedServer(in: namespace)
        var server: ScriptedServer? = try ScriptedServer(in: namespace)
        let port = try #require(server?.port)
        let file = try write(
            """
            [[host]]
            name = "db"
            tcp = "127.0.0.1:\(port)"
            interval = "1s"
            fall = 1
            rise = 1
            [[hook]]
            webhook = "\(receiver.url)/alert"
            group-wait = "0s"
            """
        )
        func start() async throws -> RunningService {
            try await RunningService(in: directory, namespace: namespace, options: ["--config", file])
        }
        var service = try await start()
        try await service.hasLogged("host `db` is up")
        server = nil
        await receiver.requests(atLeast: 1)
        // The control server waits for the rest of this request, while the queue is closed already.
        let client = try RawClient(service.socket)
        try client.send("POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
        service.process.signal(SIGTERM)
        try await service.hasLogged("stopping")
        server = try ScriptedServer(port: port, in: namespace)
        #expect(try await service.process.end() == .exited(0))
        service = try await start()
        let requests = await receiver.requests(atLeast: 2)
        let alerts = try requests.map { try Command.json(String(decoding: $0.body, as: UTF8.self)) }
        #expect(alerts.map { $0["event"] as? String } == ["down", "up"])
        withExtendedLifetime((client, server)) {}
    }

    /// Prints the id of the message that waits for the queue.
    private static let readID = """
        import sqlite3, sys
        print(sqlite3.connect(sys.argv[1]).execute("SELECT id FROM hook_message").fetchone()[0])
        """

    @Test(
        .enabled(if: NetworkNamespace.isAvailable),
        .enabled(if: OtherUsers.areAvailable, "becoming another user needs root")
    )
    func `an alert whose id a user has taken arrives with another id`() async throws {
        let namespace = try NetworkNamespace()
        let receiver = try ScriptedServer(in: namespace)
        try #require(chmod(directory.path, 0o755) == 0)
        let access = "[access]\nsubmit-groups = [\"daemon\"]\n"
        let hook = "[[hook]]\nwebhook = \"\(receiver.url)/alert\"\ngroup-wait = \"0s\"\n"
        let host = "[[host]]\nname = \"db\"\ntcp = \"127.0.0.1:1\"\nfall = 1\n"
        let file = try write(access + "[queue.limits]\nrequests = 1\n")
        func start() async throws -> RunningService {
            try await RunningService(in: directory, namespace: namespace, options: ["--config", file])
        }
        var service = try await start()
        let path = service.socket
        /// Enqueues a request of another user, instead of the earlier one. The group `daemon` has the id 1.
        func take(_ id: String) async throws {
            let members = #""id":"\#(id)","queue":"always","when_full":"drop-oldest""#
            let body = #"{"url":"http://127.0.0.1:1/","method":"POST",\#(members)}"#
            let response = try await offPool { try RawClient(path, as: 60_001, inGroup: 1).enqueue(body) }
            #expect(response.status == 202, "\(response)")
        }
        try await take("first")
        _ = try write(access + "[queue.limits]\nrequests = 1\n" + host + hook)
        service.process.signal(SIGHUP)
        try await service.hasLogged("the webhook for host `db` (down) was not queued")
        let history = "\(service.stateDirectory)/history.sqlite"
        let read = try await Subprocess("/usr/bin/python3", ["-c", Self.readID, history]).outcome()
        let id = try #require(read.output.first, "\(read.errors)")
        try await take(id)
        try await service.stop()
        _ = try write(access + host + hook)
        service = try await start()
        let alert = await receiver.requests(atLeast: 1)[0]
        #expect(alert.target == "/alert" && alert.values(of: "Idempotency-Key") != [id])
        #expect(try await service.request(id)["submitter"] as? Int == 60_001)
        try await service.hasLogged("a webhook gets another id, because its id is in use: ")
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `a reload applies the hooks with the hosts, or neither`() async throws {
        let namespace = try NetworkNamespace()
        let host = "[[host]]\nname = \"NAME\"\nroute = \"192.0.2.1\"\n"
        let program = try program("echo alert $NETWATCH_EVENT")
        let hook = "[[hook]]\nprogram = \"\(program)\"\ncauses = [\"local\"]\ngroup-wait = \"0s\"\n"
        let file = try write(host.replacing("NAME", with: "first"))
        let service = try await RunningService(
            in: directory,
            namespace: namespace,
            options: ["--config", file]
        )
        try await service.hasLogged("host `first` is down (local)")
        _ = try write(host.replacing("NAME", with: "second") + hook + "hosts = [\"third\"]\n")
        service.process.signal(SIGHUP)
        try await service.hasLogged("\(file):8:1: hook: `hosts`: there is no host with the name `third`")
        try await service.hasLogged("the service keeps the old values")
        _ = try write(host.replacing("NAME", with: "second") + hook)
        service.process.signal(SIGHUP)
        try await service.hasLogged("alert down")
        #expect(service.process.errors.values.filter { $0.hasPrefix("alert ") } == ["alert down"])
        #expect(service.process.errors.values.contains { $0.contains("host `second` is down (local)") })
    }

    @Test func `the failure of a program is logged even if the parent of the service ignores SIGCHLD`()
        async throws
    {
        let program = try program("exit 3")
        let file = try write(closedHost(reportedBy: program))
        let paths = ["--state-dir", directory.file("state"), "--socket", directory.file("socket")]
        let service = try Subprocess(
            "/usr/bin/env",
            ["--ignore-signal=CHLD", Command.path, "serve", "--config", file] + paths
        )
        defer { service.signal(SIGTERM) }
        let ending = "the program `\(program)` of a hook failed for host `closed`: exit status 3"
        try await service.errors.wait { $0.contains { $0.contains(ending) } }
    }

    @Test func `a stop does not wait for a program that runs`() async throws {
        let program = try program("echo running; exec sleep 300")
        let file = try write(closedHost(reportedBy: program))
        let service = try await RunningService(in: directory, options: ["--config", file])
        try await service.hasLogged("running")
        try await service.stop()
        let ending = "the program `\(program)` of a hook failed for host `closed`: signal 15"
        #expect(service.process.errors.values.contains { $0.contains(ending) })
    }
}

internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct HistoryCommandTests {
    private let directory = try! ScratchDirectory()

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `an outage is listed, and the history survives a restart`() async throws {
        let namespace = try NetworkNamespace()
        var server: ScriptedServer? = try ScriptedServer(in: namespace)
        let port = try #require(server?.port)
        let pace = "interval = \"1s\"\ntimeout = \"60s\"\nfall = 1\n"
        let text = "[[host]]\nname = \"db\"\ntcp = \"127.0.0.1:\(port)\"\n" + pace
        let file = try directory.write(Array(text.utf8), to: "netwatch.toml")
        var service: RunningService? = try await RunningService(
            in: directory,
            namespace: namespace,
            options: ["--config", file]
        )
        try await service?.hasLogged("host `db` is up")
        #expect(try await summary(service).hasPrefix("db  up"))
        server = nil
        try await service?.hasLogged("host `db` is down (remote)")
        #expect(try await summary(service).hasPrefix("db  down (remote)"))
        server = try ScriptedServer(port: port, in: namespace)
        try await service?.hasLogged("host `db` is up; it was down since")
        #expect(try await summary(service).hasPrefix("db  up"))
        service?.process.signal(SIGTERM)
        #expect(try await service?.process.end() == .exited(0))
        service = try await RunningService(in: directory, namespace: namespace, options: ["--config", file])
        let json = try await service?.run("history", "db", "--format", "json")
        let history = try Command.json(try #require(json?.output.first))
        #expect(history["v"] as? Int == 1 && history["window"] as? String == "24h")
        #expect(history["type"] as? String == "history")
        let outages = try #require(history["outages"] as? [[String: Any]])
        #expect(outages.count == 1)
        #expect(outages.first?["cause"] as? String == "remote")
        #expect(outages.first?["reason"] as? String == "connection refused")
        let lines = try await service?.run("history").output
        #expect(lines?.count == 4, "\(lines ?? [])")
        #expect(
            lines?[1].contains("█") == true || lines?[1].contains("▄") == true
                || lines?[1].contains("x") == true
        )
        #expect(lines?[3].contains("host down for") == true)
        withExtendedLifetime(server) {}
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `the status page is served on a loopback port, to requests for its address only`() async throws {
        let namespace = try NetworkNamespace()
        let service = try await RunningService(
            in: directory,
            namespace: namespace,
            options: ["--web", "127.0.0.1:9317"]
        )
        func get(_ arguments: String...) async throws -> [String] {
            let options = ["-sS", "-w", "%{http_code}", "http://127.0.0.1:9317/healthz"]
            return try await Subprocess("/usr/bin/curl", options + arguments, in: namespace).outcome().output
        }
        #expect(try await get() == ["ok", "200"])
        #expect(try await get("-H", "Host: other.example").last == "421")
        #expect(try await get("-X", "POST").last?.hasSuffix("405") == true)
        withExtendedLifetime(service) {}
    }

    private func summary(_ service: RunningService?) async throws -> String {
        try await service?.run("history", "db").output.first ?? ""
    }

    @Test func `a misspelled host suggests the most similar one`() async throws {
        let hosts = ["collector", "db"].map { "[[host]]\nname = \"\($0)\"\nroute = \"127.0.0.1\"\n" }
        let file = try directory.write(Array(hosts.joined().utf8), to: "netwatch.toml")
        let service = try await RunningService(in: directory, options: ["--config", file])
        for (host, hint) in [
            ("colector", "did you mean `collector`?"), ("nothing", "it watches `collector`, `db`"),
        ] {
            let outcome = try await service.run("history", host)
            #expect(outcome.ending == .exited(1))
            #expect(outcome.errors.last == "hint: \(hint)")
        }
    }

    @Test func `an unknown host and an unknown window are refused`() async throws {
        let service = try await RunningService(in: directory)
        let host = try await service.run("history", "nothing")
        #expect(host.ending == .exited(1))
        #expect(host.errors.first == "error: the service watches no host `nothing`")
        let window = try await service.run("history", "--window", "1h")
        #expect(window.ending == .exited(64))
        #expect(window.errors.first?.contains("`1h` is not a window") == true)
        #expect(try await service.run("history").errors == ["the service watches no hosts"])
    }
}

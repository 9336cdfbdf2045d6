internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// `netwatch host` and `netwatch wait` with probes.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")")
)
struct ProbeCommandTests {
    private let testbed: VethTestbed

    init() throws {
        testbed = try VethTestbed()
    }

    private func server(_ answer: @escaping @Sendable () -> ScriptedServer.Action) throws -> ScriptedServer {
        try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far) { _ in answer() }
    }

    private func host(_ arguments: String...) async throws -> (line: [String: Any], ending: Subprocess.Ending)
    {
        let command = ["host", VethTestbed.farAddress, "--once", "--format", "json"] + arguments
        let outcome = try await Command.start(command, in: testbed.near).outcome()
        return (try Command.json(try #require(outcome.output.first)), outcome.ending)
    }

    @Test func `a host whose port is open is up, and one whose port is closed is down`() async throws {
        let server = try server { .respond("") }
        let up = try await host("--probe", "tcp:\(server.port)")
        #expect(up.ending == .exited(0))
        #expect(up.line["state"] as? String == "up")
        #expect(up.line["reachability"] as? String == "reachable")
        #expect(up.line["probe"] as? String == "tcp \(server.port)")
        #expect(up.line["latency_seconds"] as? Double != nil)
        let down = try await host("--probe", "tcp:1")
        #expect(down.ending == .exited(1))
        #expect(down.line["state"] as? String == "down")
        #expect(down.line["reachability"] as? String == "reachable")
        #expect(down.line["validation"] as? String == "failed (connection refused)")
    }

    @Test func `an HTTP probe sends HEAD`() async throws {
        let server = try server { .respond(status: 200, headers: [], body: []) }
        let up = try await host("--probe", "http:\(server.port)")
        #expect(up.ending == .exited(0))
        #expect(up.line["state"] as? String == "up")
        #expect(server.requests.map(\.method) == ["HEAD"])
    }

    @Test func `the phases of an HTTP probe are in the output`() async throws {
        let server = try server { .respond(status: 200, headers: [], body: []) }
        let probe = "http:\(server.port)"
        let phases = try #require(try await host("--probe", probe).line["phases"] as? [String: Double])
        #expect(Set(phases.keys) == ["connect_seconds", "first_byte_seconds"])
        let command = ["host", VethTestbed.farAddress, "--once", "--probe", probe, "-v"]
        let text = try await Command.start(command, in: testbed.near).outcome()
        #expect(text.output.count == 2, "\(text.output)")
        let steps = /^ {14}connect [\d.]+ m?s, first byte [\d.]+ m?s$/
        #expect(text.output.last?.wholeMatch(of: steps) != nil, "\(text.output)")
        let quiet = try await Command.start(Array(command.dropLast()), in: testbed.near).outcome()
        #expect(quiet.output.count == 1)
        let tcp = try await host("--probe", "tcp:\(server.port)")
        #expect(tcp.line["phases"] == nil)
        #expect(try await Command.run("host", "--once", "-v", "127.0.0.1").ending == .exited(64))
    }

    @Test func `a server that responds with 5xx is down`() async throws {
        let server = try server { .respond(status: 503, headers: [], body: []) }
        let down = try await host("--probe", "http:\(server.port)")
        #expect(down.ending == .exited(1))
        #expect((down.line["validation"] as? String)?.contains("503") == true)
    }

    @Test func `a host without a route is not probed`() async throws {
        try testbed.near.ip("link set near0 down")
        let outcome = try await host("--probe", "tcp:80")
        #expect(outcome.ending == .exited(1))
        #expect(outcome.line["state"] as? String == "down")
        #expect(outcome.line["probe"] == nil)
        #expect(outcome.line["reason"] as? String == "noRoute")
    }

    @Test func `a verified wait ends with the response`() async throws {
        let server = try server { .respond("") }
        let outcome = try await Command.start(
            [
                "wait", "--host", VethTestbed.farAddress, "--for", "verified", "--probe",
                "tcp:\(server.port)", "-v",
            ],
            in: testbed.near
        ).outcome()
        #expect(outcome.ending == .exited(0))
        #expect(outcome.errors.first?.contains("is up") == true)
    }

    @Test func `a captive portal does not satisfy --check-url`() async throws {
        let portal = try server {
            .respond(status: 302, headers: [.init("Location", "http://portal.example/")], body: [])
        }
        func wait(for server: ScriptedServer, _ timeout: String) async throws -> Subprocess.Outcome {
            try await Command.start(
                ["wait", "--for", "verified", "--check-url", server.url + "/204", "--timeout", timeout],
                in: testbed.near
            ).outcome()
        }
        let held = try await wait(for: portal, "10s")
        #expect(held.ending == .exited(1))
        #expect(held.errors.first?.contains("portal.example") == true, "\(held.errors)")
        let free = try server { .respond(status: 204, headers: [], body: []) }
        #expect(try await wait(for: free, "60s").ending == .exited(0))
    }

    @Test(arguments: [
        (["host", "--probe", "tcp"], "requires a host"),
        (["host", "a.example", "--probe", "icmp"], "`icmp` is not"),
        (["host", "a.example", "--probe", "tcp:0"], "`tcp:0` is not"),
        (["host", "a.example", "--probe", "tcp:65536"], "`tcp:65536` is not"),
        (["host", "a.example", "--interval", "5s"], "requires `--probe`"),
        (["wait", "--for", "verified"], "`--check-url`"),
        (["wait", "--for", "verified", "--check-url", "https://a.example/"], "https"),
        (["wait", "--host", "a.example", "--probe", "tcp"], "`--for verified`"),
    ])
    func `invalid combinations of options are rejected`(arguments: [String], words: String) async throws {
        let outcome = try await Command.start(arguments).outcome()
        #expect(outcome.ending == .exited(64))
        #expect(outcome.errors.first?.contains(words) == true, "\(outcome.errors)")
    }
}

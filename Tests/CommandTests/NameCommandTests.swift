internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The built command with a scripted name server.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct NameCommandTests {
    private let testbed: VethTestbed
    private let server: ScriptedNameServer

    init() throws {
        testbed = try VethTestbed()
        server = try ScriptedNameServer(in: testbed.far)
        try testbed.near.ip("route add blackhole 203.0.113.9")
    }

    private func start(_ arguments: String..., files: ResolverFiles? = nil) throws -> Subprocess {
        try Command.start(arguments, in: testbed.near, resolvingBy: files ?? ResolverFiles())
    }

    @Test func `twelve names whose name server is silent delay no other name`() async throws {
        let silent = (1...12).map { "silent\($0).example" }
        for name in silent { server.set(name, .silence) }
        server.set("healthy.example", VethTestbed.farAddress)
        // The C library waits 30 s for each of these names. The test finishes before that.
        let process = try Command.start(
            ["host", "--format", "json"] + silent + ["healthy.example"],
            in: testbed.near,
            resolvingBy: ResolverFiles()
        )
        defer { process.signal(9) }
        try await process.output.wait(timeout: .seconds(25)) { lines in
            lines.contains { $0.contains("healthy.example") && $0.contains(#""reachability":"reachable""#) }
        }
    }

    @Test func `a status follows the records of its name in both directions`() async throws {
        server.set("moving.example", "203.0.113.9")
        let host = try start("host", "moving.example")
        defer { host.signal(9) }
        try await host.output.waitForLast { $0.contains("blackhole") }
        let wait = try start("wait", "--host", "moving.example", "--timeout", "60s")
        try await server.queries.wait { $0.count >= 4 }
        server.set("moving.example", VethTestbed.farAddress)
        #expect(try await wait.end() == .exited(0))
        try await host.output.waitForLast { $0.contains("  reachable ") }
        server.set("moving.example", "203.0.113.9")
        try await host.output.waitForLast { $0.contains("blackhole") }
    }

    @Test func `SERVFAIL, an alias loop and invalid addresses are not reachable`()
        async throws
    {
        server.set("failing.example", .failure)
        server.set("loop.example", .alias("loop.example"))
        server.set("link-local.example", "fe80::1", "0.0.0.0")
        server.set("loopback.example", "127.0.0.1")
        for (name, words) in [
            ("failing.example", "name not resolved"), ("loop.example", "name not resolved"),
            ("link-local.example", "name not resolved"), ("loopback.example", "reachable      this machine"),
        ] {
            let outcome = try await start("host", "--once", name).outcome()
            #expect(outcome.output.count == 1 && outcome.output[0].contains(words), "\(outcome)")
        }
    }

    @Test func `a DNS answer after the timeout does not leave a wrong status`() async throws {
        server.set("late.example", .silence)
        let files = try ResolverFiles("nameserver \(VethTestbed.farAddress)\noptions timeout:1 attempts:1\n")
        let host = try start("host", "late.example", files: files)
        defer { host.signal(9) }
        try await host.output.wait { !$0.isEmpty }
        #expect(host.output.values[0].contains("unknown"))
        server.set("late.example", VethTestbed.farAddress)
        server.answerUnanswered()
        try await host.output.waitForLast { $0.contains("  reachable ") }
    }

    @Test func `a hosts file of 10 MB is read without blocking other names`() async throws {
        let line = "203.0.113.77 host-of-a-blocklist-with-a-long-name.example\n"
        let hosts = String(repeating: line, count: 10_000_000 / line.utf8.count)
        let files = try ResolverFiles(hosts: hosts + "\(VethTestbed.farAddress) listed.example\n")
        let outcome = try await start(
            "host",
            "--until",
            "up",
            "--timeout",
            "60s",
            "listed.example",
            files: files
        )
        .outcome()
        #expect(outcome.ending == .exited(0), "\(outcome)")
    }

    @Test(arguments: ["", "nameserver\n", "\u{0}garbage\n"])
    func `an empty resolv.conf leaves names unresolved until it is written`(configuration: String)
        async throws
    {
        server.set("a.example", VethTestbed.farAddress)
        let files = try ResolverFiles(configuration)
        let host = try start("host", "a.example", files: files)
        defer { host.signal(9) }
        try await host.output.wait { !$0.isEmpty }
        #expect(host.output.values[0].contains("name not resolved"))
        // The file is a bind mount. This writes to it, because a rename would replace only the directory entry.
        try shell("echo nameserver \(VethTestbed.farAddress) >\(files.path(of: "resolv.conf"))")
        try await host.output.waitForLast { $0.contains("  reachable ") }
    }

    @Test func `status shows names with their ages, and name servers that are silent`() async throws {
        server.set("answered.example", "203.0.113.9")
        server.set("silent.example", .silence)
        let service = try await RunningService(
            in: try ScratchDirectory(),
            namespace: testbed.near,
            resolvingBy: ResolverFiles(
                "nameserver \(VethTestbed.farAddress)\noptions timeout:3 attempts:1\n"
            )
        )
        for name in ["answered", "silent"] {
            _ = try await service.run("send", "--queue", "always", "http://\(name).example/", "-d", "x")
        }
        // On a busy machine, the first lookup of the other name may time out, too.
        _ = try await statusLines(of: service) { lines in
            lines.contains { $0.hasPrefix("resolver    192.0.2.2, silent for ") }
                && lines.contains { $0.contains("answered.example") && $0.hasSuffix("ago  203.0.113.9") }
        }
        // An answer for the other name ends the silence until the next lookup.
        let json = try await statusLines(of: service, ["--format", "json"]) { lines in
            lines.contains { $0.contains("silent_seconds") }
        }
        let report = try Command.json(try #require(json.first))
        let names = try #require((report["service"] as? [String: Any])?["names"] as? [String: Any])
        #expect(names["name_servers"] as? [String] == [VethTestbed.farAddress])
        #expect(names["silent_seconds"] is Double)
        let list = try #require(names["names"] as? [[String: Any]])
        #expect(list.map { $0["name"] as? String } == ["answered.example", "silent.example"])
        #expect(list.map { $0["silent"] as? Bool } == [false, true])
    }

    /// Polls the status until it satisfies the condition, because no event reports that a lookup is slow.
    private func statusLines(
        of service: RunningService,
        _ options: [String] = [],
        until isSatisfied: ([String]) -> Bool
    ) async throws -> [String] {
        while true {
            let lines = try await service.run(["status", "--timeout", "30s"] + options).output
            if isSatisfied(lines) { return lines }
        }
    }
}

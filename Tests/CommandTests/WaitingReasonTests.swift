internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Reasons that the commands and the control API report for waiting requests.
@Suite(.timeLimit(.minutes(5))) struct WaitingReasonTests {
    /// A URL whose port has no listener, so that connections are refused.
    private static let refusing = "http://127.0.0.1:1/"

    private func row(_ id: String, _ service: RunningService) async throws -> String {
        let list = try await service.run("queue", "list").output
        return try #require(list.first { $0.hasPrefix("\(id) ") }, "\(list)")
    }

    private func entry(_ id: String, _ service: RunningService) async throws -> [String: Any] {
        try #require(try await service.queue().first { $0["id"] as? String == id })
    }

    /// Returns a server with an untrusted certificate, and a service whose lane to it is closed for at least five
    /// minutes.
    private func closed() async throws -> (HostileHTTP2Server, RunningService) {
        let server = try HostileHTTP2Server("nothing")
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run("send", server.url, "--id", "first")
        #expect(sent.errors.first?.hasPrefix("held (trust): ") == true, "\(sent.errors)")
        #expect(try await row("first", service).contains("  held (trust): "))
        return (server, service)
    }

    @Test func `a request in a closed lane reports the closure and its end`() async throws {
        let (server, service) = try await closed()
        try await service.keep(server.url, "--id", "second")
        let row = try await row("second", service)
        #expect(row.contains("m  waiting after failures") && row.contains("  in "), "\(row)")
        let entry = try await entry("second", service)
        let closure = try #require(entry["lane_closure"] as? [String: Any])
        #expect(entry["waits_for"] as? String == "lane" && closure["until"] is String, "\(entry)")
        #expect(entry["reason"] as? String == "waiting after failures" && closure["status"] == nil)
        let shown = try await service.run("queue", "show", "second").output
        #expect(shown.contains("state     pending: waiting after failures"), "\(shown)")
        #expect(
            shown.contains {
                $0.hasPrefix("waits     for its lane, which failures or a `Retry-After` have closed")
            },
            "\(shown)"
        )
        #expect(shown.contains { $0.hasPrefix("closed    until ") }, "\(shown)")
        #expect(try await service.run("send", server.url).errors == ["queued: waiting after failures"])
        let waited = try await service.run("send", server.url, "--wait=200ms")
        #expect(waited.ending == .exited(75) && waited.errors.first == "queued: waiting after failures")
    }

    @Test func `a request behind a held request reports that it waits for earlier ones`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 401) }
        let service = try await RunningService(in: try ScratchDirectory())
        let held = try await service.run("send", server.url, "--fifo", "--id", "first")
        #expect(held.errors.first?.hasPrefix("held (auth)") == true, "\(held.errors)")
        let explanation = "the server requires credentials, and the request has none"
        #expect(held.errors.last?.hasPrefix(explanation) == true, "\(held.errors)")
        try await service.keep(server.url, "--fifo", "--id", "second")
        let entry = try await entry("second", service)
        #expect(entry["reason"] as? String == "waiting for earlier requests of the lane", "\(entry)")
        #expect(
            entry["waits_for"] as? String == "earlier" && entry["waits_for_request"] as? String == "first"
        )
        #expect(try await row("second", service).hasSuffix("  waits for first"))
        let shown = try await service.run("queue", "show", "second").output
        #expect(
            shown.contains("waits     for earlier requests of its FIFO lane; the first is first"),
            "\(shown)"
        )
        let third = try await service.run("send", server.url, "--fifo", "--id", "third")
        #expect(third.errors == ["queued: waits for first"], "\(third.errors)")
        let fourth = try await service.run("send", server.url, "--dependency", "third", "--format", "json")
        let sent = try Command.json(try #require(fourth.output.first, "\(fourth.errors)"))
        #expect(sent["state"] as? String == "queued" && sent["waits_for_request"] as? String == "third")
    }

    @Test func `every report of a request whose own attempt failed has the error`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.keep(Self.refusing, "--id", "first")
        // The lane is briefly open between two attempts.
        let words = "waiting after failures: 127.0.0.1: Connection refused"
        try await service.until { try await entry("first", service)["reason"] as? String == words }
        try await service.until { try await row("first", service).hasSuffix("  \(words)") }
        try await service.until {
            try await service.run("queue", "show", "first").output.contains("state     pending: \(words)")
        }
        try await service.until {
            try await service.run("send", Self.refusing, "--id", "first", "--wait=100ms").errors
                .contains("queued: \(words)")
        }
    }

    @Test func `lanes closed by failures are listed`() async throws {
        let (server, service) = try await closed()
        try await service.keep(server.url, "--id", "second")
        let stats = try await service.run("queue", "stats").output
        #expect(
            stats.contains {
                $0.hasPrefix("closed      \(server.url), no label, user \(geteuid()): until ")
                    && $0.hasSuffix("Z, waiting after failures")
            },
            "\(stats)"
        )
        let status = try await service.run("status", "--timeout", "30s").output
        #expect(
            status.contains {
                $0.hasPrefix("queue       1 pending, 1 held, ") && $0.hasSuffix(", 1 lane closed")
            },
            "\(status)"
        )
    }

    @Test func `a request that waits for its window reports when the window opens`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        // The window is closed now and for the next hours, whenever the test runs.
        let hour = (Calendar(identifier: .gregorian).dateComponents(in: .gmt, from: Date()).hour! + 12) % 24
        let start = (hour < 10 ? "0" : "") + "\(hour):30"
        let window = "\(start)-\(start.prefix(3))31"
        let sent = try await service.run("send", Self.refusing, "--window", window, "--id", "night")
        let words = "waiting for the window \(window) UTC, which opens at 2"
        #expect(sent.errors.first?.hasPrefix("queued: \(words)") == true, "\(sent.errors)")
        #expect(sent.errors.first?.hasSuffix("T\(start):00.000Z") == true, "\(sent.errors)")
        let entry = try await entry("night", service)
        #expect((entry["window_opens"] as? String)?.hasSuffix("T\(start):00.000Z") == true, "\(entry)")
        #expect(try await row("night", service).contains("  \(words)"))
        let shown = try await service.run("queue", "show", "night").output
        #expect(shown.contains { $0.hasPrefix("window    opens 2") }, "\(shown)")
    }

    @Test func `requested delays are reported as reasons`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.keep(Self.refusing, "--id", "later", "--at", "1h")
        try await service.keep(Self.refusing, "--id", "next", "--dependency", "later")
        let later = try await row("later", service)
        #expect(later.hasSuffix("  scheduled for later") && later.contains("  in "), "\(later)")
        #expect(try await row("next", service).hasSuffix("  waits for later"))
        #expect(try await entry("next", service)["waits_for_request"] as? String == "later")
        #expect(try await entry("later", service)["waits_for"] as? String == "time")
        #expect(try await entry("next", service)["waits_for"] as? String == "dependencies")
        try await service.pause()
        #expect(try await row("later", service).hasSuffix("  paused"))
        #expect(try await entry("later", service)["waits_for"] as? String == "resume")
    }

    @Test func `a request held because of its dependency names it`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 404, headers: []) }
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for id in ["dropped", "refused"] { try await service.keep(server.url, "--id", id) }
        for id in ["dropped", "refused"] {
            try await service.keep(server.url, "--id", "after-\(id)", "--dependency", id)
        }
        _ = try await service.run("queue", "cancel", "dropped")
        _ = try await service.run("queue", "resume")
        _ = try await service.curl("/v1/requests/refused?wait=60")
        for (id, fate) in [("dropped", "cancelled"), ("refused", "dead")] {
            let words = "held (dependency): depends on `\(id)`, which is \(fate)"
            #expect(try await row("after-\(id)", service).hasSuffix("  \(words)"))
            #expect(try await entry("after-\(id)", service)["reason"] as? String == words)
            #expect(
                try await service.run("queue", "show", "after-\(id)").output.contains("state     \(words)")
            )
        }
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `without a path, the reason is the one that the command for reachability prints`() async throws {
        let testbed = try VethTestbed()
        let service = try await RunningService(in: try ScratchDirectory(), namespace: testbed.near)
        try testbed.near.ip("link set near0 down")
        let url = "http://\(VethTestbed.farAddress)/"
        for (id, options) in [("offline", []), ("in-order", ["--fifo"])] {
            // The command ends when the queue knows why the request waits.
            let sent = try await service.run(["send", url, "--id", id] + options)
            #expect(sent.errors == ["queued: not reachable: no route"])
            #expect(try await entry(id, service)["waits_for"] as? String == "network")
            #expect(try await row(id, service).hasSuffix("  not reachable: no route"))
        }
        let shown = try await service.run("queue", "show", "offline").output
        #expect(shown.contains("state     pending: not reachable: no route"), "\(shown)")
        #expect(shown.contains { $0.hasPrefix("waits     for a path to the host") }, "\(shown)")
        let waited = try await service.run("send", url, "--wait=3s")
        #expect(waited.ending == .exited(75) && waited.errors.first == "queued: not reachable: no route")
    }

    @Test func `a hold is explained where it is printed`() async throws {
        let server = try ScriptedServer { _ in .close }
        let service = try await RunningService(in: try ScratchDirectory())
        _ = try await service.run("send", server.url, "-d", "x", "--at-most-once", "--id", "once")
        let text = "the server may have executed the request"
        let shown = try await service.run("queue", "show", "once").output
        #expect(shown.contains { $0.hasPrefix("state     held (ambiguous): ") }, "\(shown)")
        #expect(
            shown.contains { $0.hasPrefix("held      \(text)") && $0.contains("queue retry") },
            "\(shown)"
        )
        let listed = try await service.run("queue", "list").errors
        #expect(listed.contains { $0.hasPrefix("held (ambiguous): \(text)") }, "\(listed)")
    }

    @Test func `a release of a request that the server may have executed says that it is sent again`()
        async throws
    {
        let server = try ScriptedServer { _ in .close }
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.keep(server.url, "--id", "waits", "--at", "1h")
        _ = try await service.run("queue", "hold", "waits")
        _ = try await service.run("send", server.url, "-d", "x", "--at-most-once", "--id", "once")
        let released = try await service.run("queue", "release", "waits", "once")
        #expect(released.ending == .exited(0) && released.output.count == 2, "\(released.errors)")
        #expect(released.errors == ["once is sent again; the server may have received it before"])
    }

    @Test func `a 407 is the proxy's refusal`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 407, headers: [], body: []) }
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run("send", server.url, "--id", "a")
        #expect(sent.errors.first == "held (auth): HTTP 407", "\(sent.errors)")
        #expect(sent.errors.last?.hasPrefix("HTTP 407: probably a proxy") == true)
        let listed = try await service.run("queue", "list").errors
        #expect(listed.contains { $0.hasPrefix("held (auth): HTTP 407: probably a proxy") }, "\(listed)")
    }

    @Test func `the end of a dropped or replaced request is not explained by its last error`() async throws {
        // The lane stays closed, so that no second attempt is in progress when the request is dropped.
        let server = try ScriptedServer { _ in
            .respond(status: 503, headers: [.init("Retry-After", "3600")], body: [])
        }
        let service = try await RunningService(in: try ScratchDirectory())
        _ = try await service.run("send", server.url, "--id", "dropped")
        _ = try await service.run("queue", "cancel", "dropped")
        try await service.pause()
        for id in ["old", "new"] { try await service.keep(server.url, "--id", id, "--replace-key", "k") }
        let dropped = try await service.run("queue", "show", "dropped").output
        #expect(
            dropped.contains("state     cancelled: last error: HTTP 503"),
            "\(dropped)"
        )
        let replaced = try await service.run("queue", "show", "old").output
        #expect(replaced.contains("state     superseded: replaced by a newer request"), "\(replaced)")
        #expect(replaced.contains("replaced  by new"), "\(replaced)")
        let new = try await service.run("queue", "show", "new").output
        #expect(new.contains("replaces  waiting requests with `--replace-key k`"), "\(new)")
    }
}

internal import NetwatchTestSupport
internal import Testing

@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct StatusCommandTests {
    @Test func `status without a service shows the path, the interfaces and that no service runs`()
        async throws
    {
        let testbed = try VethTestbed()
        let online = try await Command.run("status", "--socket", "/no/such/socket", in: testbed.near)
        #expect(online.ending == .exited(0) && online.errors.isEmpty)
        #expect(
            online.output == [
                "path        reachable      near0 192.0.2.1 via 192.0.2.2",
                "interfaces  lo     up          127.0.0.1/8 ::1/128",
                "            near0  up          192.0.2.1/24 2001:db8::1/64",
                "service     not running (no process listens on `/no/such/socket`)",
            ]
        )
        try testbed.near.ip("link set near0 down")
        let offline = try await Command.run("status", "--socket", "/no/such/socket", in: testbed.near)
        #expect(offline.ending == .exited(1))
        #expect(offline.output.first == "path        not reachable  no route")
        #expect(offline.output.contains { $0.contains("near0  down") })
    }

    @Test func `status shows the queue of the service`() async throws {
        let testbed = try VethTestbed()
        let service = try await RunningService(in: try ScratchDirectory(), namespace: testbed.near)
        try testbed.near.ip("link set near0 down")
        _ = try await service.run("send", "http://\(VethTestbed.farAddress)/", "-d", "x")
        let text = try await service.run("status", "--timeout", "30s")
        #expect(text.ending == .exited(1))
        #expect(text.output.last == "service     running, pid \(service.process.pid)")
        #expect(text.output.dropLast().last?.hasPrefix("queue       1 pending, oldest ") == true)
        let json = try await service.run("status", "--timeout", "30s", "--format", "json")
        let report = try Command.json(try #require(json.output.first))
        #expect(json.output.count == 1 && report["type"] as? String == "status")
        let summary = try #require(report["service"] as? [String: Any])
        #expect(summary["state"] as? String == "running")
        #expect(summary["pid"] as? Int32 == service.process.pid)
        let queue = try #require(summary["queue"] as? [String: Any])
        #expect((queue["counts"] as? [String: Int])?["pending"] == 1 && queue["oldest"] is String)
        #expect((report["path"] as? [String: Any])?["reason"] as? String == "noRoute")
    }

    @Test func `with --check-queue, the exit status includes the queue`() async throws {
        let testbed = try VethTestbed()
        let service = try await RunningService(in: try ScratchDirectory(), namespace: testbed.near)
        let id = try await service.keep("http://127.0.0.1:1/", "--at", "1h")
        let check = ["status", "--check-queue", "--timeout", "30s"]
        for (command, status) in [
            (["queue", "stats"], 0), (["queue", "hold", id], 1), (["queue", "release", id], 0),
            (["queue", "pause"], 1),
        ] as [([String], CInt)] {
            #expect(try await service.run(command).ending == .exited(0), "\(command)")
            let checked = try await service.run(check)
            #expect(checked.ending == .exited(status), "\(command): \(checked.output)")
        }
        #expect(try await service.run("status", "--timeout", "30s").ending == .exited(0))
        try await service.stop()
        #expect(try await service.run(check).ending == .exited(2))
        try testbed.near.ip("link set near0 down")
        #expect(try await service.run(check).ending == .exited(1))
    }

    @Test func `an unresponsive service does not delay status`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        service.process.signal(19)
        defer { service.process.signal(18) }
        let status = try await service.run("status")
        #expect(status.output.last == "service     not responding in time, pid \(service.process.pid)")
    }
}

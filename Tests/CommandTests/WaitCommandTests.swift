internal import CNetwatchTestSupport
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct WaitCommandTests {
    private func wait(_ arguments: String..., in testbed: VethTestbed) throws -> Subprocess {
        try Command.start(["wait"] + arguments, in: testbed.near)
    }

    @Test func `wait returns immediately and silently if online`() async throws {
        let testbed = try VethTestbed()
        let quiet = try wait(in: testbed)
        #expect(try await quiet.end() == .exited(0))
        #expect(quiet.output.values.isEmpty && quiet.errors.values.isEmpty)
        let verbose = try wait("-v", "--host", VethTestbed.farAddress, in: testbed)
        #expect(try await verbose.end() == .exited(0))
        #expect(verbose.output.values.isEmpty)
        #expect(verbose.errors.values.first == "`192.0.2.2` is reachable (near0 192.0.2.1)")
        #expect(verbose.errors.values.last?.hasPrefix("waited for ") == true)
    }

    @Test func `after the timeout, unmet conditions are reported with the reason`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add unreachable 198.51.100.8", "route add blackhole 198.51.100.9")
        let process = try wait(
            "--host",
            VethTestbed.farAddress,
            "--host",
            "198.51.100.8",
            "--host",
            "198.51.100.9",
            "--timeout",
            "10s",
            in: testbed
        )
        #expect(try await process.end() == .exited(1))
        #expect(
            process.errors.values == [
                "error: timed out after 10.0 s: `198.51.100.8` is not reachable (unreachable route), "
                    + "`198.51.100.9` is not reachable (blackhole route)"
            ]
        )
        try testbed.near.ip("link set near0 down")
        let general = try wait("-t", "10s", in: testbed)
        #expect(try await general.end() == .exited(1))
        #expect(
            general.errors.values == [
                "error: timed out after 10.0 s: the public Internet is not reachable (no route)"
            ]
        )
    }

    @Test func `with --any, one host is sufficient`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add unreachable 198.51.100.8")
        let hosts = ["--host", "198.51.100.8", "--host", VethTestbed.farAddress]
        let any = try Command.start(["wait", "--any"] + hosts, in: testbed.near)
        #expect(try await any.end() == .exited(0))
        let all = try Command.start(["wait", "--timeout", "10s"] + hosts, in: testbed.near)
        #expect(try await all.end() == .exited(1))
    }

    @Test func `the wait ends when the carrier is present`() async throws {
        let testbed = try VethTestbed()
        try testbed.setCable(connected: false)
        let watcher = try Command.start(["host", VethTestbed.remoteAddress], in: testbed.near)
        defer { watcher.signal(9) }
        try await watcher.output.wait { $0.last?.contains("no carrier") == true }
        let late = try wait("--for", "carrier", "-t", "10s", in: testbed)
        #expect(try await late.end() == .exited(1))
        #expect(late.errors.values == ["error: timed out after 10.0 s: no interface has a carrier"])
        let processes = [
            try wait("--timeout", "0", "--host", VethTestbed.remoteAddress, in: testbed),
            try wait("--for", "carrier", in: testbed),
            try wait("--for", "carrier", "-i", "near0", "--stable", "50ms", in: testbed),
            try wait("--interface", "near0", "--stable", "50ms", in: testbed),
        ]
        defer { for process in processes { process.signal(9) } }
        try testbed.setCable(connected: true)
        for process in processes { #expect(try await process.end() == .exited(0)) }
    }

    @Test func `--interface restricts the wait to that interface`() async throws {
        let testbed = try VethTestbed()
        let other = try wait("-i", "eth7", "-t", "10s", in: testbed)
        #expect(try await other.end() == .exited(1))
        #expect(
            other.errors.values == [
                "error: timed out after 10.0 s: the public Internet is reachable "
                    + "(near0 192.0.2.1 via 192.0.2.2), but not over `eth7`"
            ]
        )
        let missing = try wait("--for", "carrier", "-i", "eth7", "-t", "10s", in: testbed)
        #expect(try await missing.end() == .exited(1))
        #expect(missing.errors.values == ["error: timed out after 10.0 s: there is no interface `eth7`"])
        let any = try wait("--for", "carrier", "--any", "-i", "eth7", "-i", "near0", in: testbed)
        #expect(try await any.end() == .exited(0))
    }

    @Test func `without netlink, the carrier is unknown`() async throws {
        let started = Recorder<Result<Subprocess, any Error>>()
        try startDetachedThread(named: "sandbox") {
            guard netwatch_deny_netlink() == 0 else { return }
            started.record(Result { try Command.start(["wait", "--for", "carrier", "--timeout", "0"]) })
        }
        try await started.wait { !$0.isEmpty }
        let process = try started.values[0].get()
        #expect(try await process.end() == .exited(2))
        #expect(process.errors.values.first?.contains("Operation not permitted") == true)
    }
}

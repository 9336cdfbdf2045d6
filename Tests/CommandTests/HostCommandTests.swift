internal import CNetwatchTestSupport
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(2))) struct HostCommandTests {
    @Test func `a bare argument with a dot is a host`() async throws {
        let result = try await Command.run("127.0.0.1", "--once")
        #expect(result.ending == .exited(0))
        #expect(result.output.count == 1 && result.errors.isEmpty)
        #expect(result.output.first?.contains("127.0.0.1") == true)
        #expect(result.output.first?.contains("reachable") == true)
    }

    @Test func `without netlink the answer is unknown, with a message`() async throws {
        let started = Recorder<Result<Subprocess, any Error>>()
        try startDetachedThread(named: "sandbox") {
            guard netwatch_deny_netlink() == 0 else { return }
            started.record(Result { try Command.start(["host", "127.0.0.1", "--once", "--format", "json"]) })
        }
        try await started.wait { !$0.isEmpty }
        let process = try started.values[0].get()
        #expect(try await process.end() == .exited(2))
        let line = try Command.json(try #require(process.output.values.first))
        #expect(line["reachability"] as? String == "unknown")
        #expect(line["reason"] as? String == "noNetlink")
        #expect(process.errors.values.first?.contains("Operation not permitted") == true)
    }

    @Test func `a reader that goes away ends the command without a complaint`() async throws {
        // Writes until the reader is gone, so that the command's own write is the one that fails.
        let output = try shell(
            """
            {
                trap '' PIPE
                until ! echo; do :; done 2>/dev/null
                trap - PIPE
                \(Command.path) host 127.0.0.1 --once
                echo "status $?" >&2
            } | true
            """
        )
        #expect(output == "status 0\n")
    }
}

@Suite(.timeLimit(.minutes(2))) struct OutputTests {
    @Test func `output that cannot be written is not a success`() throws {
        let output = try shell("\(Command.path) host 127.0.0.1 --once >/dev/full || echo status $?")
        #expect(output == "error: could not write to standard output: No space left on device\nstatus 2\n")
    }

    @Test func `a command that waits for changes ends with its reader`() throws {
        let output = try shell("\(Command.path) host 127.0.0.1 | head -n 1 | wc -l")
        #expect(output == "1\n")
    }
}

@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(2))
)
struct HostCommandOnACableTests {
    @Test func `one line per change, as JSON`() async throws {
        let testbed = try VethTestbed()
        let process = try Command.start(
            ["host", VethTestbed.remoteAddress, "--format", "json"],
            in: testbed.near
        )
        defer { process.signal(9) }
        try await process.output.wait { $0.count == 1 }
        try testbed.setCable(connected: false)
        try await process.output.wait { $0.count == 2 }
        try testbed.setCable(connected: true)
        try await process.output.wait { $0.count == 3 }
        let lines = try process.output.values.map(Command.json)
        #expect(lines.map { $0["reachability"] as? String } == ["reachable", "notReachable", "reachable"])
        #expect(lines.map { $0["v"] as? Int } == [1, 1, 1])
        #expect(lines[0]["interface"] as? String == "near0")
        #expect(lines[0]["gateway"] as? String == VethTestbed.farAddress)
        #expect(lines[0]["source"] as? String == VethTestbed.nearAddress)
        #expect(lines[0]["connection"] as? String == "ethernetOrWiFi")
        #expect(lines[1]["reason"] as? String == "noCarrier")
        #expect(lines[1]["previous"] as? String == "reachable")
        #expect(lines[2]["previous_seconds"] is Double)
        #expect(process.errors.values.isEmpty)
    }

    @Test func `the exit status of --once answers the question`() async throws {
        let testbed = try VethTestbed()
        for (arguments, status) in [
            (["host", VethTestbed.farAddress, "--once"], 0),
            (["host", "--once"], 0),
        ] as [([String], CInt)] {
            #expect(try await Command.start(arguments, in: testbed.near).end() == .exited(status))
        }
        try testbed.near.ip("link set near0 down")
        let offline = try Command.start(["host", VethTestbed.farAddress, "--once"], in: testbed.near)
        #expect(try await offline.end() == .exited(1))
        #expect(offline.output.values.first?.contains("not reachable  no route") == true)
        let general = try Command.start(["host", "--once"], in: testbed.near)
        #expect(try await general.end() == .exited(1))
    }
}

internal import CNetwatchTestSupport
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct HostCommandTests {
    @Test func `a bare argument with a dot is a host`() async throws {
        let result = try await Command.run("127.0.0.1", "--once")
        #expect(result.ending == .exited(0))
        #expect(result.output.count == 1 && result.errors.isEmpty)
        #expect(result.output.first?.contains("127.0.0.1") == true)
        #expect(result.output.first?.contains("reachable") == true)
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `without netlink the reachability is unknown, with a message`() async throws {
        let namespace = try NetworkNamespace()
        let started = Recorder<Result<Subprocess, any Error>>()
        try startDetachedThread(named: "sandbox") {
            guard netwatch_deny_netlink() == 0 else { return }
            started.record(
                Result {
                    try Subprocess(
                        "/usr/bin/nsenter",
                        [
                            "--net=\(namespace.path)", Command.path, "host", "192.0.2.1", "--once", "-f",
                            "json",
                        ]
                    )
                }
            )
        }
        try await started.wait { !$0.isEmpty }
        let process = try started.values[0].get()
        #expect(try await process.end() == .exited(2))
        let line = try Command.json(try #require(process.output.values.first))
        #expect(line["reachability"] as? String == "unknown")
        #expect(line["reason"] as? String == "noNetlink")
        #expect(process.errors.values.first?.contains("Operation not permitted") == true)
    }

    @Test func `a closed pipe ends the command without a message`() async throws {
        // The loop writes until the reader has exited, so the command's own write fails.
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
        // 141 is 128 + SIGPIPE. None of the command's own statuses fits, because its result was not delivered.
        #expect(output == "status 141\n")
    }
}

@Suite(.timeLimit(.minutes(5))) struct OutputTests {
    @Test func `a failed write to standard output is an error`() throws {
        let output = try shell("\(Command.path) host 127.0.0.1 --once >/dev/full || echo status $?")
        #expect(output == "error: could not write to standard output: No space left on device\nstatus 2\n")
    }

    @Test func `a waiting command ends when its reader exits`() throws {
        let output = try shell("\(Command.path) host 127.0.0.1 | head -n 1 | wc -l")
        #expect(output == "1\n")
    }
}

@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct HostCommandLinkTests {
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

    @Test func `the exit status of --once reports reachability`() async throws {
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
        #expect(general.output.values.first?.contains("  Internet   ") == true, "\(general.output.values)")
        let json = try Command.start(["host", "--once", "-f", "json"], in: testbed.near)
        #expect(try await json.end() == .exited(1))
        #expect(try Command.json(try #require(json.output.values.first))["host"] as? String == "general")
    }

    @Test func `with several hosts, --once exits with the worst status`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add unreachable 198.51.100.8")
        for (hosts, status) in [
            ([VethTestbed.farAddress, VethTestbed.remoteAddress], 0),
            ([VethTestbed.farAddress, "198.51.100.8"], 1),
            (["no-such-name.invalid", VethTestbed.farAddress], 2),
            (["no-such-name.invalid", "198.51.100.8"], 1),
        ] as [([String], CInt)] {
            let process = try Command.start(["host", "--once"] + hosts, in: testbed.near)
            #expect(try await process.end() == .exited(status), "\(hosts)")
            #expect(process.output.values.count == 2)
        }
    }

    @Test func `--count ends the command after that number of lines`() async throws {
        let testbed = try VethTestbed()
        let process = try Command.start(
            ["host", VethTestbed.remoteAddress, "--count", "3"],
            in: testbed.near
        )
        defer { process.signal(9) }
        for (connected, count) in [(false, 1), (true, 2)] {
            try await process.output.wait { $0.count == count }
            try testbed.setCable(connected: connected)
        }
        #expect(try await process.end() == .exited(0))
        #expect(process.output.values.count == 3)
        #expect(process.output.values.last?.contains("(was not reachable for ") == true)
    }

    @Test func `--count ends --until with 1 if the state is not reached`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add unreachable 198.51.100.8")
        let hosts = [VethTestbed.remoteAddress, "198.51.100.8"]
        for (options, status) in [
            (["--until", "up", "--count", "2"], 1),
            (["--until", "up", "--any", "--count", "2"], 0),
            (["--count", "2"], 0),
        ] as [([String], CInt)] {
            let process = try Command.start(["host"] + hosts + options, in: testbed.near)
            #expect(try await process.end() == .exited(status), "\(options)")
        }
    }

    @Test func `--until waits for all hosts, or with --any for one`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add unreachable 198.51.100.8")
        let hosts = [VethTestbed.remoteAddress, "198.51.100.8"]
        let anyUp = try Command.start(["host", "--until", "up", "--any"] + hosts, in: testbed.near)
        #expect(try await anyUp.end() == .exited(0))
        let anyDown = try Command.start(["host", "--until", "down", "--any"] + hosts, in: testbed.near)
        #expect(try await anyDown.end() == .exited(0))
        let allUp = try Command.start(["host", "--until", "up"] + hosts, in: testbed.near)
        defer { allUp.signal(9) }
        try await allUp.output.wait { $0.count == 2 }
        try testbed.near.ip("route del unreachable 198.51.100.8")
        #expect(try await allUp.end() == .exited(0))
        #expect(allUp.output.values.count == 3 && allUp.errors.values.isEmpty)
    }

    @Test func `a timeout reports the remaining hosts and the reasons`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add unreachable 198.51.100.8")
        let process = try Command.start(
            ["host", VethTestbed.farAddress, "198.51.100.8", "--until", "up", "--timeout", "10s"],
            in: testbed.near
        )
        #expect(try await process.end() == .exited(1))
        #expect(
            process.errors.values == [
                "error: timed out after 10.0 s: `198.51.100.8` is not reachable (unreachable route)"
            ]
        )
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a signal prints a summary and then ends the command`(
        signal: CInt
    ) async throws {
        let testbed = try VethTestbed()
        let process = try Command.start(
            ["host", VethTestbed.farAddress, VethTestbed.remoteAddress],
            in: testbed.near
        )
        defer { process.signal(9) }
        try await process.output.wait { $0.count == 2 }
        try testbed.near.ip("route add unreachable \(VethTestbed.remoteAddress)")
        try await process.output.wait { $0.count == 3 }
        process.signal(signal)
        #expect(try await process.end() == .signalled(signal))
        let summary = process.output.values.dropFirst(3).map { $0.split(separator: " ", maxSplits: 1) }
        #expect(summary.map { String($0[0]) } == [VethTestbed.farAddress, VethTestbed.remoteAddress])
        #expect(summary.first?[1].contains("reachable, 0 changes, reachable 100.0 % of ") == true)
        #expect(summary.last?[1].contains("not reachable, 1 change, reachable ") == true)
    }

    @Test func `JSON has no summary`() async throws {
        let process = try Command.start(["host", "127.0.0.1", "--format", "json"])
        try await process.output.wait { $0.count == 1 }
        process.signal(SIGINT)
        #expect(try await process.end() == .signalled(SIGINT))
        #expect(process.output.values.count == 1)
    }
}

@Suite(
    .enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) is not installed"),
    .timeLimit(.minutes(5))
)
struct HostLiveTableTests {
    @Test func `the table hides the cursor and restores it at the end`() throws {
        let output = try shell(
            """
            TERM=xterm NO_COLOR=1 script -qec '\(Command.path) host 127.0.0.1 ::1 --live --until up' /dev/null \
                </dev/null
            """
        )
        #expect(output.contains("HOST          STATE          FOR           PATH OR REASON"))
        #expect(output.contains("\u{1B}[?25l") && output.contains("127.0.0.1     reachable"))
        #expect(output.hasSuffix("\u{1B}[?25h"))
    }

    @Test func `a signal also restores the cursor`() throws {
        let directory = try ScratchDirectory()
        let output = try shell(
            """
            cat >\(directory.file("run")) <<'END'
            \(Command.path) host 127.0.0.1 --live &
            # Drawn once more, over what was drawn before.
            tail -n +1 -F \(directory.file("typescript")) 2>/dev/null | grep -q "$(printf '\\033')\\[2A"
            kill -TERM $!
            wait $!
            echo status $?
            END
            TERM=xterm script -qfec 'sh \(directory.file("run"))' \(directory.file("typescript")) </dev/null
            """
        )
        #expect(output.contains("\u{1B}[?25h"))
        #expect(output.contains("127.0.0.1             reachable, 0 changes"))
        #expect(output.contains("status 143"))
    }

    @Test func `q ends the table, and the mode of the terminal is restored`() throws {
        let command = "\(Command.path) host 127.0.0.1 --live; echo status $?; stty -a"
        let output = try shell("printf q | TERM=xterm script -qec '\(command)' /dev/null")
        #expect(output.contains("\u{1B}[?25h") && output.contains("status 0"), "\(output)")
        #expect(output.contains("icanon") && !output.contains("-icanon"), "\(output)")
    }

    /// A shell with job control starts the table in the foreground. Another job sends the signal of Ctrl-Z.
    @Test func `Ctrl-Z shows the cursor, and fg draws the table again`() throws {
        let directory = try ScratchDirectory()
        let (script, pid) = (directory.file("typescript"), directory.file("pid"))
        let output = try shell(
            """
            cat >\(directory.file("run")) <<'END'
            set -m
            { tail -n +1 -F \(script) 2>/dev/null | grep -q reachable; kill -TSTP $(cat \(pid)); } &
            sh -c 'echo $$ >\(pid); exec \(Command.path) host 127.0.0.1 --live'
            echo stopped $?
            { tail -n +1 -F \(script) 2>/dev/null | sed -u '1,/stopped/d' | grep -q reachable
                kill -TERM $(cat \(pid)); } &
            fg %sh
            echo status $?
            END
            TERM=xterm script -qfec 'bash \(directory.file("run"))' \(script) </dev/null
            """
        )
        let parts = output.components(separatedBy: "stopped 148")
        try #require(parts.count == 2, "\(output)")
        for part in parts {
            let hidden = try #require(part.ranges(of: "\u{1B}[?25l").last)
            let shown = try #require(part.ranges(of: "\u{1B}[?25h").last)
            #expect(shown.lowerBound > hidden.lowerBound, "\(output)")
        }
        #expect(parts[1].contains("HOST ") && parts[1].contains("status 143"), "\(output)")
        // Only the first drawing does not replace another one.
        #expect(parts[1].ranges(of: "\r\u{1B}[J").count == 1, "\(output)")
    }

    /// After `bg`, the kernel refuses to read keys. `fg` does not notify a job that runs.
    @Test func `q ends the table after bg and fg`() throws {
        let directory = try ScratchDirectory()
        let (script, pid, keys) = (
            directory.file("typescript"), directory.file("pid"), directory.file("keys")
        )
        let output = try shell(
            """
            mkfifo \(keys)
            cat >\(directory.file("run")) <<'END'
            drawn() { tail -n +1 -F \(script) 2>/dev/null | sed -u "1,/$1/d" | grep -q reachable; }
            set -m
            { tail -n +1 -F \(script) 2>/dev/null | grep -q reachable; kill -TSTP $(cat \(pid)); } &
            sh -c 'echo $$ >\(pid); exec \(Command.path) host 127.0.0.1 --live --until down --timeout 2m'
            echo stopped
            bg %sh
            drawn stopped
            echo foreground
            { drawn foreground; printf q >\(keys); } &
            fg %sh
            echo status $?
            END
            TERM=xterm script -qfec 'bash \(directory.file("run"))' \(script) <>\(keys)
            """
        )
        // 1, because the host is not down. A timeout has the same status.
        #expect(output.contains("status 1") && !output.contains("timed out"), "\(output)")
    }

    @Test(arguments: ["TERM=dumb", "TERM=", "-u TERM"])
    func `a terminal that cannot move the cursor is refused`(variable: String) throws {
        let command = "env \(variable) \(Command.path) host 127.0.0.1 --live; echo status $?"
        let output = try shell("script -qec '\(command)' /dev/null </dev/null")
        #expect(output.contains("needs a terminal that can move the cursor") && output.contains("status 64"))
        #expect(!output.contains("\u{1B}"), "\(output)")
    }
}

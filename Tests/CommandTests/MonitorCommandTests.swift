internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct MonitorCommandTests {
    private func monitor(_ arguments: String..., in testbed: VethTestbed) throws -> Subprocess {
        try Command.start(["monitor"] + arguments, in: testbed.near)
    }

    @Test func `the current state is printed first, then changes`() async throws {
        let testbed = try VethTestbed()
        let process = try monitor("--format", "json", in: testbed)
        defer { process.signal(9) }
        try await process.output.wait { $0.contains { $0.contains(#""type":"path""#) } }
        let present = try process.output.values.map(Command.json)
        #expect(present.last?["type"] as? String == "path")
        #expect(present.last?["reachability"] as? String == "reachable")
        #expect(present.dropLast().allSatisfy { $0["change"] as? String == "present" })
        let interfaces = present.filter { $0["type"] as? String == "interface" }
        #expect(interfaces.map { $0["interface"] as? String } == ["lo", "near0"])
        #expect(interfaces.last?["state"] as? String == "up")
        let addresses = present.filter { $0["interface"] as? String == "near0" }.compactMap { $0["address"] }
        #expect(addresses as? [String] == [VethTestbed.nearAddress, "2001:db8::1"])
        let count = present.count
        try testbed.setCable(connected: false)
        try await process.output.wait { $0.count == count + 2 }
        let changes = try process.output.values.dropFirst(count).map(Command.json)
        let link = try #require(changes.first { $0["type"] as? String == "interface" })
        #expect(link["change"] as? String == "changed" && link["state"] as? String == "noCarrier")
        let path = try #require(changes.first { $0["type"] as? String == "path" })
        #expect(path["reason"] as? String == "noCarrier" && path["previous"] as? String == "reachable")
    }

    @Test func `added and removed addresses are printed as text`() async throws {
        let testbed = try VethTestbed()
        let process = try monitor(in: testbed)
        defer { process.signal(9) }
        try await process.output.wait { $0.contains { $0.contains("  path  ") } }
        try testbed.near.ip("addr add 203.0.113.5/28 dev near0")
        try await process.output.wait {
            $0.last?.hasSuffix("  address    near0         203.0.113.5/28") == true
        }
        try testbed.near.ip("addr del 203.0.113.5/28 dev near0")
        try await process.output.wait { $0.last?.hasSuffix("203.0.113.5/28  removed") == true }
        #expect(process.errors.values.isEmpty)
    }

    @Test func `--dev restricts the lines to an interface`() async throws {
        let testbed = try VethTestbed()
        let process = try monitor("--dev", "near0", in: testbed)
        defer { process.signal(9) }
        try await process.output.wait { $0.contains { $0.contains("2001:db8::1/64") } }
        try testbed.near.ip("addr add 127.0.0.9/8 dev lo", "addr add 203.0.113.5/28 dev near0")
        try await process.output.wait { $0.last?.contains("203.0.113.5/28") == true }
        #expect(process.output.values.allSatisfy { $0.contains("  near0  ") }, "\(process.output.values)")
        #expect(try await Command.run("monitor", "--dev", "").ending == .exited(64))
    }

    @Test func `--dev restricts the notifications of a recording to an interface`() async throws {
        let directory = try ScratchDirectory()
        let (file, lines) = try await recordRoutes(in: directory)
        let routes = lines.filter { $0.contains(" dev near0 ") }
        let near = try await Command.run("monitor", "--replay", file, "--dev", "near0")
        #expect(near.ending == .exited(0) && !routes.isEmpty)
        #expect(near.output.filter { $0.contains(" dev near0 ") }.starts(with: routes))
        let other = try await Command.run("monitor", "--replay", file, "--dev", "eth7", "--dev", "eth8")
        // Lost notifications are reported for every interface.
        #expect(other.ending == .exited(0) && other.output.allSatisfy { $0.contains("lost") })
        let note = "the recording has no notifications of these interfaces"
        #expect(other.errors == (other.output.isEmpty ? [note] : []))
    }

    @Test func `a replay without notifications says so`() async throws {
        let directory = try ScratchDirectory()
        let file = try directory.write(Array(Self.header), to: "recording")
        for arguments in [["--replay", file], ["--replay", file, "--format", "json"]] {
            let replayed = try await Command.start(["monitor"] + arguments).outcome()
            #expect(replayed.ending == .exited(0) && replayed.output.isEmpty)
            #expect(replayed.errors == ["the recording has no notifications"])
        }
    }

    @Test func `a replay prints what --raw printed`() async throws {
        let testbed = try VethTestbed()
        let directory = try ScratchDirectory()
        let file = directory.file("recording")
        let process = try monitor("--raw", "--record", file, in: testbed)
        defer { process.signal(9) }
        // The first event shows that the command's netlink socket is listening.
        while process.output.values.isEmpty {
            try testbed.near.ip("link set near0 alias a", "link set near0 alias b")
        }
        try testbed.near.ip(
            "route add 203.0.113.0/24 via \(VethTestbed.farAddress) metric 7",
            "rule add from 203.0.113.0/24 lookup 300 priority 77"
        )
        try await process.output.wait { $0.last?.contains("  new      rule") == true }
        process.signal(SIGTERM)
        #expect(try await process.end() == .signalled(SIGTERM))
        let lines = process.output.values
        #expect(lines.contains { $0.hasSuffix("via 192.0.2.2 dev near0 metric 7 table 254 flags 0x0") })
        #expect(lines.last?.contains("from 203.0.113.0/24 priority 77 table 300") == true)
        let replayed = try await Command.run("monitor", "--replay", file)
        #expect(replayed.ending == .exited(0) && replayed.errors.isEmpty)
        #expect(replayed.output == lines)
        let json = try await Command.run("monitor", "--replay", file, "--format", "json")
        let route = try #require(json.output.map(Command.json).last { $0["kind"] as? String == "route" })
        #expect(route["change"] as? String == "new" && route["prefix"] as? String == "203.0.113.0/24")
        #expect(route["priority"] as? Int == 7 && route["interface"] as? String == "near0")
    }

    /// Records in a testbed whose events are routes, which do not contain the names of interfaces.
    ///
    /// - Returns: The path of the recording, and the lines that were printed meanwhile. Further notifications may have
    ///   been recorded without being printed.
    private func recordRoutes(
        in directory: ScratchDirectory
    ) async throws -> (file: String, lines: [String]) {
        let testbed = try VethTestbed()
        let file = directory.file("recording")
        let process = try Command.start(["monitor", "--raw", "--record", file], in: testbed.near)
        defer { process.signal(9) }
        while process.output.values.isEmpty {
            let route = "203.0.113.0/24 via \(VethTestbed.farAddress) metric 7"
            try testbed.near.ip("route add \(route)", "route del \(route)")
        }
        process.signal(SIGTERM)
        #expect(try await process.end() == .signalled(SIGTERM))
        return (file, process.output.values)
    }

    @Test func `a replay knows the names of the interfaces from its first line`() async throws {
        let directory = try ScratchDirectory()
        let (file, lines) = try await recordRoutes(in: directory)
        #expect(lines.first?.contains(" dev near0 ") == true, "\(lines)")
        let replayed = try await Command.run("monitor", "--replay", file)
        #expect(replayed.ending == .exited(0))
        #expect(replayed.output.starts(with: lines), "\(lines) \(replayed.output)")
    }

    @Test func `a replay uses the names that only later notifications contain`() async throws {
        let directory = try ScratchDirectory()
        let (file, _) = try await recordRoutes(in: directory)
        let (initial, others) = try records(in: file)
        try (Self.header + others + initial).write(to: URL(filePath: file))
        let replayed = try await Command.run("monitor", "--replay", file)
        #expect(replayed.output.first?.contains(" dev near0 ") == true, "\(replayed.output)")
    }

    private static let header = Data("netwatch".utf8) + Data([2, 0, 0, 0, 0, 0, 0, 0])

    /// Returns the records of a recording: those of the initial state as notifications, and the others.
    private func records(in file: String) throws -> (initial: Data, others: Data) {
        var rest = try Data(contentsOf: URL(filePath: file)).dropFirst(16)
        var (initial, others) = (Data(), Data())
        while let kind = rest.first {
            let size = rest.dropFirst(4).prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            let record = rest.prefix(24 + size)
            if kind == 3 { initial += Data([1]) + record.dropFirst() } else { others += record }
            rest = rest.dropFirst(24 + size)
        }
        return (initial, others)
    }

    @Test func `without --raw, a recording has every notification, too`() async throws {
        let testbed = try VethTestbed()
        let directory = try ScratchDirectory()
        let file = directory.file("recording")
        let process = try monitor("--record", file, in: testbed)
        defer { process.signal(9) }
        try await process.output.wait { $0.contains { $0.contains("  path  ") } }
        try testbed.near.ip("addr add 203.0.113.5/28 dev near0")
        try await process.output.wait { $0.last?.contains("203.0.113.5/28") == true }
        process.signal(SIGTERM)
        #expect(try await process.end() == .signalled(SIGTERM))
        let replayed = try await Command.run("monitor", "--replay", file)
        #expect(replayed.output.contains { $0.contains("new      address    203.0.113.5/28 dev near0") })
    }

    @Test func `a recording is not overwritten, and a damaged one is rejected with the offset`() async throws
    {
        let directory = try ScratchDirectory()
        let file = directory.file("recording")
        let refused: [(bytes: [UInt8], words: String)] = [
            (Array("netwatch".utf8) + [3, 0, 0, 0, 0, 0, 0, 0], "version 3 at offset 8"),
            (Array("netwatch".utf8) + [2, 0, 0, 0, 0, 0, 0, 0, 1, 0], "record at offset 16 is incomplete"),
            (Array("notwatch".utf8) + [1, 0, 0, 0, 0, 0, 0, 0], "not a recording"),
        ]
        for (bytes, words) in refused {
            try Data(bytes).write(to: URL(fileURLWithPath: file))
            let replayed = try await Command.run("monitor", "--replay", file)
            #expect(replayed.ending == .exited(64) && replayed.output.isEmpty)
            #expect(replayed.errors.first?.contains(words) == true, "\(replayed.errors)")
        }
        let recording = try await Command.run("monitor", "--record", file)
        #expect(recording.ending == .exited(64))
        #expect(
            recording.errors == [
                "error: could not record to `\(file)`: the file exists", "", "hint: `--force` replaces it",
            ]
        )
    }

    @Test func `a full disk ends the recording, which stays valid`() throws {
        let testbed = try VethTestbed()
        let directory = try ScratchDirectory()
        let disk = try ScratchDirectory()
        let file = disk.file("recording")
        try Data(
            """
            mount -t tmpfs -o size=8k none \(disk.path)
            \(Command.path) monitor --raw --record \(file) >/dev/null 2>\(directory.file("errors")) &
            while kill -0 $! 2>/dev/null; do ip link set near0 alias a; ip link set near0 alias b; done
            wait $!
            echo status $?
            cat \(directory.file("errors"))
            \(Command.path) monitor --replay \(file) >/dev/null && echo whole
            """.utf8
        ).write(to: URL(fileURLWithPath: directory.file("run")))
        let output = try testbed.near.shell("unshare -m sh \(directory.file("run"))")
        #expect(output.hasPrefix("status 2\nerror: could not write to `\(file)`: No space left on device\n"))
        #expect(output.hasSuffix("earlier records are complete and can be replayed\nwhole\n"))
    }
}

internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Lists of hosts in arguments and in files.
@Suite(.timeLimit(.minutes(5))) struct HostListTests {
    private func file(_ text: String, in directory: ScratchDirectory) throws -> String {
        let path = directory.file("hosts")
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test func `hosts of a file and of the arguments are watched, each once`() async throws {
        let directory = try ScratchDirectory()
        let path = try file("\u{feff}# ours\n\n127.0.0.1 # here\r\n  ::1\n127.0.0.1\n::0:1", in: directory)
        let result = try await Command.run(
            "host",
            "127.0.0.2",
            "--hosts-from",
            path,
            "--once",
            "--format",
            "json"
        )
        #expect(result.ending == .exited(0) && result.errors.isEmpty)
        let hosts = try result.output.map { try Command.json($0)["host"] as? String }
        #expect(hosts == ["127.0.0.2", "127.0.0.1", "::1"])
    }

    @Test func `every invalid line is reported with its reason, and nothing is watched`() async throws {
        let directory = try ScratchDirectory()
        let long = String(repeating: "x", count: 5000)
        let path = try file("127.0.0.1\nhttp://a/\n\n10.0.0.0/8\nfe80::1\n\(long)\n", in: directory)
        let result = try await Command.run("host", "a b", "--hosts-from", path, "--once")
        #expect(result.ending == .exited(64) && result.output.isEmpty)
        #expect(
            result.errors.dropLast(2) == [
                "error: `a b` is not a valid host: a name can contain only letters, digits, hyphens, underscores "
                    + "and dots; write an international name as `xn--…`",
                "error: \(path):2: `http://a/` is not a valid host: it is a URL; give only the host",
                "error: \(path):4: `10.0.0.0/8` is not a valid host: "
                    + "it contains a path, a query or a prefix length; give only the host",
                "error: \(path):5: `fe80::1` is not a valid host: a link-local address needs a zone, "
                    + "as in `fe80::1%eth0`",
                "error: \(path):6: the line is longer than 4096 bytes",
            ]
        )
        #expect(result.errors.last?.hasPrefix("hint: accepted: a host name") == true)
    }

    @Test(arguments: ["https://user:hush@127.0.0.1/", "user:hush@127.0.0.1", "https://127.0.0.1/?token=hush"])
    func `the message about a URL instead of a host contains no secret`(url: String) async throws {
        let result = try await Command.run("host", url, "--once")
        #expect(result.ending == .exited(64))
        let errors = result.errors.joined(separator: "\n")
        #expect(errors.contains("is not a valid host") && !errors.contains("hush"), "\(errors)")
    }

    @Test(arguments: [
        ("127.0.0.1:5432", "did you mean the host `127.0.0.1` with `--probe tcp:5432`?"),
        ("https://127.0.0.1/health", "did you mean the host `127.0.0.1` with `--probe https`?"),
        ("http://127.0.0.1:8080", "did you mean the host `127.0.0.1` with `--probe http:8080`?"),
        ("ftp://127.0.0.1", nil), ("127.0.0.1:99999", nil), ("a_b.c:d", nil),
    ])
    func `a URL or a port suggests a probe`(host: String, hint: String?) async throws {
        let result = try await Command.run("host", host, "--once")
        #expect(result.ending == .exited(64))
        let accepted = result.errors.last?.hasPrefix("hint: accepted: a host name") == true
        #expect(hint.map { result.errors.last == "hint: \($0)" } ?? accepted, "\(result.errors)")
    }

    @Test func `characters of a host list that are not printable are escaped`() async throws {
        let directory = try ScratchDirectory()
        let path = directory.file("hosts")
        try Data([0xff, 0x0a, 0x1b, 0x5b, 0x32, 0x4a, 0x0a]).write(to: URL(fileURLWithPath: path))
        let result = try await Command.run("host", "--hosts-from", path)
        #expect(result.ending == .exited(64))
        #expect(result.errors.first == "error: \(path):1: the line is not UTF-8")
        let second = result.errors.dropFirst().first ?? ""
        #expect(second.hasPrefix("error: \(path):2: `\\u{1B}[2J` is not a valid host"), "\(second)")
    }

    @Test func `hosts are read from standard input`() throws {
        let output = try shell(
            "printf '127.0.0.1\\n127.0.0.3' | \(Command.path) host --hosts-from - --once | wc -l"
        )
        #expect(output == "2\n")
        let refused = try shell("printf '127.0.0.1\\na/b' | \(Command.path) host --hosts-from - || echo $?")
        #expect(refused.hasPrefix("error: standard input:2: `a/b` is not a valid host"))
        #expect(refused.hasSuffix("64\n"))
    }

    @Test func `at most 1000 invalid lines are reported`() async throws {
        let directory = try ScratchDirectory()
        let path = try file(String(repeating: "?\n", count: 1500), in: directory)
        let result = try await Command.run("host", "--hosts-from", path)
        #expect(result.ending == .exited(64))
        #expect(result.errors.count == 1003)
        #expect(result.errors.dropLast(2).last == "error: 500 more values are not hosts")
    }

    /// Returns `count` different address literals, one per line.
    private func literals(_ count: Int) -> String {
        (1...count).map { "10.\($0 >> 16).\($0 >> 8 & 255).\($0 & 255)" }.joined(separator: "\n")
    }

    @Test func `hosts above the limit are rejected, naming the limit`() async throws {
        let directory = try ScratchDirectory()
        let path = try file(literals(100_001), in: directory)
        let result = try await Command.run("host", "--hosts-from", path)
        #expect(result.ending == .exited(64) && result.output.isEmpty)
        #expect(result.errors.first == "error: too many hosts: at most 100000 are accepted")
    }

    @Test func `the maximum number of hosts can be watched`() async throws {
        let directory = try ScratchDirectory()
        let path = try file(literals(100_000), in: directory)
        let result = try await Command.run("host", "--hosts-from", path, "--count", "100")
        #expect(result.ending == .exited(0) && result.errors.isEmpty)
        #expect(result.output.count == 100)
    }
}

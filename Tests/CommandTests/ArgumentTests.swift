internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct ArgumentTests {
    @Test func `an unknown command suggests the most similar one`() async throws {
        let result = try await Command.run("hots", "example")
        #expect(result.ending == .exited(64))
        #expect(result.output.isEmpty)
        #expect(result.errors == ["error: unknown command `hots`", "", "hint: did you mean `host`?"])
    }

    @Test func `an unknown command without a similar one lists all commands`() async throws {
        let result = try await Command.run("frobnicate")
        #expect(result.ending == .exited(64))
        let commands = [
            "host", "monitor", "status", "wait", "history", "send", "queue", "serve", "config", "doctor",
            "help",
        ]
        let list = commands.map { "`\($0)`" }.joined(separator: ", ")
        let host = "to watch a host of this name, use `netwatch host frobnicate`"
        #expect(result.errors.last == "hint: accepted: \(list); \(host)")
    }

    @Test(arguments: [
        (["queue", "lst"], "hint: did you mean `list`?"),
        (["queue", "drop", "a"], "hint: did you mean `cancel`?"),
        (["config", "chek"], "hint: did you mean `check`?"),
        (["help", "quee"], "hint: did you mean `queue`?"),
        (["hist"], "hint: did you mean `history`?"),
        (["list"], "hint: did you mean `netwatch queue list`?"),
        (["stats"], "hint: did you mean `netwatch queue stats`?"),
        (["drop", "a"], "hint: did you mean `netwatch queue cancel`?"),
        (["show"], "hint: did you mean `netwatch queue show` or `netwatch config show`?"),
    ])
    func `an unknown subcommand suggests a similar one`(arguments: [String], hint: String) async throws {
        let result = try await Command.start(arguments).outcome()
        #expect(result.ending == .exited(64) && result.errors.last == hint, "\(result.errors)")
    }

    @Test func `an unknown option that is similar to no other has no suggestion`() async throws {
        let result = try await Command.run("serve", "--wat")
        #expect(result.ending == .exited(64) && result.errors.first == "error: unknown option `--wat`")
    }

    @Test(arguments: [
        (["wait", "--timeout", "-1s"], "error: `--timeout` is `-1s`; it must not be negative"),
        (["queue", "list", "-n", "-5"], "error: `-n` is `-5`; it must not be negative"),
        (
            ["wait", "--timeout", "--any"],
            "error: `--timeout` requires a value, but the option `--any` follows it"
        ),
    ])
    func `an option without a usable value is reported`(arguments: [String], error: String) async throws {
        let result = try await Command.start(arguments).outcome()
        #expect(result.ending == .exited(64) && result.errors.first == error, "\(result.errors)")
    }

    @Test(arguments: [["--frobnicate"], ["host", "--frobnicate"], ["queue", "frobnicate"], ["send"]])
    func `unknown flags and missing arguments are usage errors with a hint`(arguments: [String]) async throws
    {
        let process = try Command.start(arguments)
        #expect(try await process.end() == .exited(64))
        #expect(process.output.values.isEmpty)
        #expect(process.errors.values.first?.hasPrefix("error: ") == true)
        #expect(process.errors.values.last?.hasPrefix("hint: ") == true)
    }

    @Test(arguments: ["ftp://example.com", "example.com:x", "", "a b", "fe80::1"])
    func `an invalid host is reported with the accepted forms`(host: String) async throws {
        let result = try await Command.run("host", host)
        #expect(result.ending == .exited(64))
        #expect(result.errors.first?.hasPrefix("error: `\(host)` is not a valid host: ") == true)
        #expect(result.errors.last?.contains("a host name (`example.com`) or an address") == true)
    }

    @Test(arguments: [
        (["queue", "list"], true), (["queue", "flush"], false), (["queue", "events"], false),
    ])
    func `only commands that can do without the service propose to open the directory`(
        arguments: [String],
        isProposed: Bool
    ) async throws {
        let socket = try ScratchDirectory().file("socket")
        let result = try await Command.start(arguments + ["--socket", socket]).outcome()
        #expect(result.ending == .exited(69))
        #expect(result.errors.last?.contains("`--state-dir`") == isProposed, "\(result.errors)")
    }

    @Test(arguments: [["queue", "list"], ["send", "http://127.0.0.1/"], ["status"], ["serve"]])
    func `a socket path has at most 107 bytes`(arguments: [String]) async throws {
        let path = "/no/such/" + String(repeating: "s", count: 98)
        #expect(path.utf8.count == 107)
        // Not for `serve`: with a valid socket path, it would start and use the default state directory.
        if arguments != ["serve"] {
            let longest = try await Command.start(arguments + ["--socket", path]).outcome()
            #expect(longest.ending != .exited(64), "\(longest.errors)")
        }
        let longer = try await Command.start(arguments + ["--socket", path + "s"]).outcome()
        #expect(longer.ending == .exited(64))
        #expect(
            longer.errors.first?.contains("a socket must have 1 to 107 bytes") == true,
            "\(longer.errors)"
        )
        #expect(longer.errors.first?.hasSuffix("has 108") == true, "\(longer.errors)")
    }

    @Test func `a NETWATCH_SOCKET that is not a socket is reported`() async throws {
        let result = try await Command.run(
            "queue",
            "list",
            environment: ["NETWATCH_SOCKET": "/etc/passwd"]
        )
        #expect(result.ending == .exited(64))
        #expect(
            result.errors == [
                "error: `/etc/passwd` is not a socket", "",
                "hint: the path is the value of `NETWATCH_SOCKET`",
            ]
        )
    }

    @Test func `a directory without a queue is reported with a hint`() async throws {
        let scratch = try ScratchDirectory()
        let file = try scratch.write(Array("x".utf8), to: "export")
        for directory in [scratch.path, scratch.file("new"), file] {
            let result = try await Command.run("queue", "import", file, "--state-dir", directory)
            #expect(result.ending == .exited(64))
            #expect(result.errors.first?.hasPrefix("error: there is no queue in `\(directory)`") == true)
            #expect(result.errors.last == "hint: `netwatch serve --state-dir DIRECTORY` creates a queue")
        }
    }

    @Test(arguments: [
        (["send", "http://127.0.0.1/", "-d", "@/no/such/file"], 64, "could not read `/no/such/file`"),
        (["send", "http://127.0.0.1/", "-d", "@/tmp"], 64, "could not read `/tmp`: it is a directory"),
        (["send", "http://127.0.0.1/", "-d", "@/dev/zero"], 64, "`/dev/zero`: it is not a regular file"),
        (["send", "http://127.0.0.1/", "-T", "/no/such/file"], 64, "could not read `/no/such/file`"),
        (["send", "http://127.0.0.1/", "-T", "/tmp"], 64, "could not read `/tmp`: it is a directory"),
        (["send", "http://127.0.0.1/", "--json", "@/no/such/file"], 64, "could not read `/no/such/file`"),
        (
            ["send", "http://127.0.0.1/", "-d", "a", "--json", "b"], 64,
            "`-d` and `--json` cannot be combined: a request has one body"
        ),
        (
            ["send", "http://127.0.0.1/", "-d", "a", "-T", "b"], 64,
            "`-d` and `-T` cannot be combined: a request has one body"
        ),
        (
            ["send", "http://127.0.0.1/", "-d", "a", "-d", "b"], 64,
            "`-d` and `-d` cannot be combined: a request has one body"
        ),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "-H", "Content-Length: 5"], 64,
            "`Content-Length` is refused: the client sets it from the body"
        ),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "-H", "Host: b"], 64,
            "`Host` is refused: the client sets it from the URL"
        ),
        (
            ["send", "http://127.0.0.1/", "--at", "2026-02-31T00:00:00Z"], 64,
            "`2026-02-31T00:00:00Z` is neither a time"
        ),
        (
            ["send", "http://127.0.0.1/", "--at", "2099-11-23T24:01:00Z"], 64,
            "`2099-11-23T24:01:00Z` is neither a time"
        ),
        (["send", "http://127.0.0.1/", "--ttl", "soon"], 64, "`soon` is not a duration"),
        (["send", "http://127.0.0.1/", "--ttl", "36500d"], 64, "`36500d` is not a duration"),
        (["send", "http://127.0.0.1/", "--at", "noon"], 64, "`noon` is neither a time"),
        (["send", "http://127.0.0.1/", "--at", "2026-13-41T00:00:00Z"], 64, "is neither a time"),
        (["send", "http://127.0.0.1/", "--expect", "good"], 64, "`good` is not an expectation"),
        (
            ["send", "http://127.0.0.1/", "--queue", "maybe"], 64,
            "`--queue` is `maybe`; accepted: auto, always, never"
        ),
        (["send", "http://127.0.0.1/", "--wait=soon"], 64, "`soon` is not a duration"),
        (
            ["send", "http://127.0.0.1/", "--priority", "high"], 64,
            "`--priority` is `high`; it must be a whole number"
        ),
        (
            ["send", "http://127.0.0.1/", "--priority", "3", "--fifo"], 64,
            "`--priority` cannot be combined with `--fifo`"
        ),
        (
            ["send", "http://127.0.0.1/", "--ttl", "400d"], 64,
            "`--ttl`: `400d` is not a duration from 1ms to 366d"
        ),
        (["send", "http://127.0.0.1/", "-m", "25h"], 64, "`25h` is not a duration from 1ms to 24h"),
        (
            ["send", "http://127.0.0.1/", "--ttl", "nope"], 64,
            "error: `--ttl`: `nope` is not a duration like"
        ),
        (["send", "http://127.0.0.1/", "--tag", ""], 64, "`--tag` must not be empty"),
        (["send", "http://127.0.0.1/", "-H", ""], 64, "`` is not a header field"),
        (["send", "http://127.0.0.1/", "-d", "@"], 64, "the name of a file must not be empty"),
        (["send", "http://127.0.0.1/", "-T", ""], 64, "the name of a file must not be empty"),
        (["send", ""], 64, "the URL must not be empty"),
        (["send", "", "--queue", "never"], 64, "the URL must not be empty"),
        (["send"], 64, "error: missing argument `<url>`"),
        (["send", "http://127.0.0.1/", "--ttl"], 64, "error: `--ttl` requires a value"),
        (["send", "http://127.0.0.1/", "--fifo=yes"], 64, "`--fifo` takes no value, but `yes` was given"),
        (
            ["send", "http://127.0.0.1/", "--laen", "a"], 64,
            "unknown option `--laen`; did you mean `--lane`?"
        ),
        (["send", "http://127.0.0.1/", "-z"], 64, "error: unknown option `-z`"),
        (["queue", "show", "a", "b"], 64, "error: unexpected argument `b`"),
        (["queue", "show", "a", "b", "it's"], 64, "error: 2 unexpected arguments: `b`, `it's`"),
        (["queue", "lsit", "--help"], 64, "error: unknown command `lsit`"),
        (["queue", "help", "lsit"], 64, "error: unknown command `lsit`"),
        (["queue", "list", "--state-dir", ""], 64, "`--state-dir` must not be empty"),
        (["queue", "import", "", "--socket", "/no/such/socket"], 64, "the name of a file must not be empty"),
        (["serve", "--credentials", ""], 64, "`--credentials` must not be empty"),
        (["serve", "--encryption-key", ""], 64, "`--encryption-key` must not be empty"),
        (["monitor", "--record", ""], 64, "`--record` must not be empty"),
        (["host", "--hosts-from", ""], 64, "the name of a file must not be empty"),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "--wait"], 64,
            "cannot be combined with `--wait`"
        ),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "--ttl", "1h"], 64,
            "cannot be combined with `--ttl`"
        ),
        (["send", "http://127.0.0.1/", "--queue", "never", "-H", "x"], 64, "`x` is not a header field"),
        (["send", "http://127.0.0.1/", "--queue", "never", "-T", "/tmp"], 64, "`/tmp`: it is a directory"),
        (
            ["send", "127.0.0.1/x", "--queue", "never"], 64,
            "`127.0.0.1/x` does not begin with `http://` or `https://`"
        ),
        (
            ["send", "ftp://127.0.0.1/", "--queue", "never"], 64,
            "the scheme of `ftp://127.0.0.1/` is not http or https"
        ),
        (
            ["send", "http://127.0.0.1/a b", "--queue", "never"], 64,
            "`http://127.0.0.1/a b` is not a URL"
        ),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "-X", "TRACE"], 64,
            "the method TRACE is refused"
        ),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "-X", "HEAD", "-d", "x"], 64,
            "a HEAD request must not have a body"
        ),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "-X", "GET", "-d", "x"], 64,
            "a GET request must not have a body"
        ),
        (["queue", "list", "--state", "lost"], 64, "`lost` is not a state; accepted: pending"),
        (["queue", "list", "-n", "0"], 64, "`-n` is 0; it must be at least 1"),
        (
            ["queue", "list", "--state-dir", "/no/such/directory"], 64,
            "there is no queue in `/no/such/directory`"
        ),
        (["queue", "list", "--state-dir", "/dev/null"], 64, "there is no queue in `/dev/null`"),
        (["queue", "cancel"], 64, "give ids or `--all`"),
        (["queue", "cancel", "a", "--all"], 64, "`--all` cannot be combined with ids"),
        (["queue", "cancel", "--all"], 64, "`--all` requires `--yes`"),
        (["queue", "cancel", "a", "--yes"], 64, "`--yes` requires `--all`"),
        (["queue", "hold", "a", "--host", "b"], 64, "require `--all`"),
        (["queue", "retry", "-", "a"], 64, "`-` cannot be combined with ids"),
        (["queue", "retry", ""], 64, "the id must not be empty"),
        (["queue", "show", ""], 64, "the id must not be empty"),
        (
            ["queue", "show", "a", "--body", "--format", "json"], 64,
            "`--body` cannot be combined with `--format json`"
        ),
        (["queue", "import", "/no/such/file"], 64, "could not read `/no/such/file`"),
        (
            ["queue", "verify", "--set-aside", "--format", "json"], 64,
            "cannot be combined with `--format json`"
        ),
        (["send", "http://127.0.0.1/", "-H", "no-colon"], 64, "`no-colon` is not a header field"),
        (["send", "http://127.0.0.1/", "--id", "-"], 64, "the id must not be empty or `-`"),
        (["send", "http://127.0.0.1/", "--id", ""], 64, "accepted: 1 to 255 printable ASCII characters"),
        (
            ["host", "a", "--probe", "tcp", "--interval", "500ms"], 64,
            "`--interval` is `500ms`; it must be at least 1s"
        ),
        (
            ["send", "http://127.0.0.1/", "-H", "A: b\nc"], 64,
            "line breaks and control characters other than tab are not allowed"
        ),
        (["send", "http://127.0.0.1/", "--socket", ""], 64, "the path of the socket must not be empty"),
        (["send", "http://127.0.0.1/", "--socket", "/etc/passwd"], 64, "`/etc/passwd` is not a socket"),
        (["send", "http://127.0.0.1/", "--socket", "/no/such/socket"], 69, "no service listens"),
        (["queue", "list", "--socket", "/no/such/socket"], 69, "no service listens"),
        (["serve", "--log-level", "loud"], 64, "`loud` is not a log level"),
        (
            ["serve", "--portal-probe", "https://a.example/"], 64,
            "`--portal-probe`: `https://a.example/` cannot be probed"
        ),
        (["serve", "--portal-probe", "generate_204"], 64, "http://HOST/"),
        (["serve", "--rate", "10"], 64, "`10` is not a rate like `10/s`"),
        (["serve", "--rate", "1/s", "--rate", "2/s"], 64, "`--rate` may be given once for each host"),
        (["serve", "--rate", "*.host=1/s"], 64, "`*.host` is not a host; accepted: a name or an address"),
        (
            ["serve", "--rate", "a=1/s", "--rate", "A=2/s"], 64,
            "`a=1/s` and `A=2/s`: `--rate` may be given once for each host"
        ),
        (
            ["serve", "--host-weight", "*.host=2"], 64,
            "`*.host` is not a host; accepted: a name or an address"
        ),
        (
            ["serve", "--host-weight", "a=1", "--host-weight", "A=2"], 64,
            "`a=1` and `A=2`: `--host-weight` may be given once for each host"
        ),
        (
            ["serve", "--lane-weight", "a=1", "--lane-weight", "a=2"], 64,
            "`a=1` and `a=2`: `--lane-weight` may be given once for each label"
        ),
        (["serve", "--host-weight", "a=0"], 64, "a name and a weight from 1 to 100, like `NAME=3`"),
        (["serve", "--lane-weight", "=1"], 64, "a name and a weight from 1 to 100, like `NAME=3`"),
        (["serve", "--metered", ""], 64, "`--metered` is ``; it must be the name of an interface"),
        (["serve", "--metered", "eth0/1"], 64, "`--metered` is `eth0/1`; it must be"),
        (["serve", "--metered", "eth 0"], 64, "`--metered` is `eth 0`; it must be"),
        (["serve", "--metered", "enp0s31f6-phone0"], 64, "1 to 15 bytes without spaces, `/` and `:`"),
        (["serve", "--reconnect-spread", "400d"], 64, "`400d` is not a duration from 0s to 366d"),
        (["send", "http://127.0.0.1/", "--interface-kind", "fax"], 64, "`fax` is not a kind of interface"),
        (
            ["send", "http://127.0.0.1/", "--interface-kind", "wifi,fax"], 64,
            "`fax` is not a kind of interface; accepted: loopback, ethernet, wifi, cellular"
        ),
        (["send", "http://127.0.0.1/", "--window", "22-6"], 64, "`22-6` is not a window like"),
        (
            ["send", "http://127.0.0.1/", "--window", "22:00-23:00", "--window", "01:00-02:00"], 64,
            "`--window` may be given only once; given: `22:00-23:00` and `01:00-02:00`"
        ),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "--allow-signature"], 64,
            "`--queue never` cannot be combined with `--allow-signature`"
        ),
        (
            ["send", "https://a.example/?X-Amz-Signature=s"], 64,
            "`allowsSignature` (`--allow-signature`) accepts a signed URL"
        ),
        (["send", "http://127.0.0.1/", "--window", "22:00-24:00"], 64, "times from 00:00 to 23:59"),
        (
            ["send", "http://127.0.0.1/", "--queue", "never", "--only-unmetered"], 64,
            "`--queue never` cannot be combined with `--only-unmetered`"
        ),
        (["send", "http://127.0.0.1/", "--expect", "json=a..b"], 64, "`a..b` is neither a JSON pointer"),
        (["send", "http://127.0.0.1/", "--expect", "cookie=a"], 64, "`cookie=a` is not an expectation"),
        (["host", "--count", "0"], 64, "`--count` is 0; it must be at least 1"),
        (["host", "--once", "--count", "1"], 64, "`--once` cannot be combined with"),
        (["host", "--any"], 64, "`--any` requires `--until`"),
        (["host", "--timeout", "5s"], 64, "`--timeout` requires `--until`"),
        (["host", "--until", "up", "--timeout", "soon"], 64, "`soon` is not a duration like `500ms`"),
        (["host", "--live"], 64, "`--live` needs a terminal"),
        (["host", "--live", "--format", "json"], 64, "`--live` cannot be combined with"),
        (["host", "--hosts-from", "/no/such/file"], 64, "could not read `/no/such/file`"),
        (["host", "--hosts-from", "/tmp"], 64, "could not read `/tmp`: it is a directory"),
        (["host", "--hosts-from", "/dev/zero"], 64, "at most 33554432 bytes are accepted"),
        (["host", "--hosts-from", "-"], 64, "`standard input` contains no host"),
        (["wait", "--timeout", "5"], 64, "`5` is not a duration"),
        (
            ["wait", "--stable", "2m", "--timeout", "1m"], 64,
            "`--stable` is `2m`; it must not be longer than `--timeout`, which is `1m`"
        ),
        (["wait", "--interface", ""], 64, "`--interface` is ``; 1 to 15 bytes are accepted"),
        (["wait", "--any"], 64, "`--any` requires `--host`"),
        (
            ["wait", "--for", "carrier", "--host", "localhost"], 64,
            "`--for carrier` cannot be combined with `--host`"
        ),
        (["wait", "--for", "moon"], 64, "`--for` is `moon`; accepted: carrier, routable, verified"),
        (["wait", "--host", "a b"], 64, "`a b` is not a valid host: a name can contain only letters"),
        (["status", "--timeout", "0"], 64, "`0` is not a duration from 1ms to 9999h"),
        (["monitor", "--force"], 64, "`--force` requires `--record`"),
        (["monitor", "--replay", "a", "--record", "b"], 64, "`--replay` cannot be combined with `--record`"),
        (["monitor", "--replay", "/no/such/file"], 64, "could not replay `/no/such/file`: No such file"),
        (["monitor", "--replay", "/dev/zero"], 64, "`/dev/zero`: not a regular file"),
        (["monitor", "--record", "/no/such/directory/file"], 64, "could not record to"),
        (["monitor", "--record", "/dev/null", "--force"], 64, "it is not a regular file"),
    ])
    func `wrong arguments are reported`(arguments: [String], status: CInt, words: String) async throws {
        let process = try Command.start(arguments)
        #expect(try await process.end() == .exited(status))
        #expect(process.errors.values.first?.contains(words) == true, "\(process.errors.values)")
    }

    @Test(arguments: [
        (["http://127.0.0.1/", "--priority", "10"], "the priority is 10; it must be 0 to 9"),
        (["http://127.0.0.1/", "--ttl", "367d"], "`--ttl`: `367d` is not a duration from 1ms to 366d"),
        (["ftp://127.0.0.1/"], "http or https"),
        (["http://127.0.0.1/", "--lane", ""], "`--lane` must not be empty"),
        (["http://127.0.0.1/", "-H", "Authorization: x"], "`Authorization` is refused"),
    ])
    func `wrong values are wrong arguments even if no service is running`(
        arguments: [String],
        words: String
    ) async throws {
        let socket = try ScratchDirectory().file("socket")
        let sent = try await Command.start(["send"] + arguments + ["--socket", socket]).outcome()
        #expect(sent.ending == .exited(64), "\(sent.errors)")
        #expect(sent.errors.first?.contains(words) == true, "\(sent.errors)")
        let valid = try await Command.run("send", "http://127.0.0.1/", "--socket", socket)
        #expect(valid.ending == .exited(69))
    }
}

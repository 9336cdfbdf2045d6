internal import ArgumentParser
internal import NetworkReachability

/// The `netwatch host` command.
struct HostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "host",
        abstract: "Watch whether packets can leave for hosts; one line per change.",
        discussion: """
            netwatch host example.com
            netwatch host example.com 2001:db8::1 --live
            netwatch host --hosts-from hosts.txt --format json
            netwatch host --once && echo online
            netwatch host server.internal --until up --timeout 5m
            netwatch host db.internal --probe tcp:5432 --interval 10s

            The answer is the kernel's: its routes, the carrier of the interface, a usable source address. \
            Nothing but DNS queries is sent, so it does not say whether a host would answer. Without HOST \
            the way to the public Internet in general is watched.

            With --probe each host that the kernel would send to is asked as well, over the very path that \
            the kernel named, when that path is found or changes and then at intervals: tcp makes a \
            connection and closes it, http and https send a HEAD request for / and take any status from \
            \(ProbeChoice.expectedStatus.lowerBound) to \(ProbeChoice.expectedStatus.upperBound) for an \
            answer. The host is then up, down, or degraded when a captive portal answers in its place; \
            --once and --until go by that.

            A file of hosts has one host per line; blank lines, and what follows a #, are passed over. If \
            any line is wrong, it is named with the reason and nothing is watched. At most \(HostList.limit) \
            hosts are watched; one that is named twice is watched once.

            SIGINT (Ctrl-C) and SIGTERM print a summary of each host, as text, before they end the command: \
            its state, how often that changed, and for how much of the time in which it was known the host \
            could be reached.

            Exit status with --once: 0 if every host is reachable, 1 if any is not, 2 if any is unknown and \
            none is known not to be. With --until: 0 when the state is there, 1 when the timeout is over. \
            With --count: 0. Else the command goes on until a signal ends it.
            """
    )

    @Argument(help: "Host names or addresses, without scheme, port, path or brackets.")
    var hosts: [String] = []

    @Option(help: "A file of hosts, one per line; - for standard input.")
    var hostsFrom: String?

    @Flag(help: "Print the present state of every host and exit with 0, 1 or 2.")
    var once = false

    @Option(name: .shortAndLong, help: "End after so many lines, 1 or more.")
    var count: Int?

    @Option(help: "End when all hosts are reachable (up), or not reachable (down).")
    var until: Until?

    @Flag(help: "With --until: end when any one host is in that state.")
    var any = false

    @Option(
        name: .shortAndLong,
        help: "With --until: how long to wait, as 500ms, 5s, 2m, 1h30m. Default and 0: for ever.",
        transform: Duration.argument
    )
    var timeout: Duration?

    @Option(
        name: .shortAndLong,
        help: "What to send: route, which is nothing; tcp[:PORT], default 443; http[:PORT]; https[:PORT].",
        transform: ProbeChoice.argument
    )
    var probe = ProbeChoice.route

    @Option(
        name: .shortAndLong,
        help: "With --probe: how often the same path is tried, 1s or more, give or take 10 %. Default 30s.",
        transform: Duration.argument
    )
    var interval: Duration?

    @Flag(help: "Show a table that is kept up to date, instead of lines. Needs a terminal.")
    var live = false

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object per line.")
    var format = OutputFormat.text

    /// The state that `--until` waits for.
    enum Until: String, ExpressibleByArgument, CaseIterable {
        case up, down
    }

    func validate() throws {
        if let count, count < 1 { throw ValidationError("`--count \(count)` is less than 1") }
        if any, until == nil { throw ValidationError("`--any` goes with `--until`") }
        if timeout != nil, until == nil { throw ValidationError("`--timeout` goes with `--until`") }
        if once, count != nil || until != nil || live {
            throw ValidationError("`--once` excludes `--count`, `--until` and `--live`")
        }
        if let interval, probe == .route || interval < .seconds(1) {
            throw ValidationError(
                probe == .route ? "`--interval` goes with `--probe`" : "`--interval` is less than 1s"
            )
        }
        if live, count != nil || format != .text {
            throw ValidationError("`--live` excludes `--count` and `--format json`")
        }
    }

    mutating func run() async throws {
        if live, !Terminal.isThere {
            throw CommandError(
                .usage,
                "`--live` needs a terminal, and standard output is none",
                hint: "leave it out for one line per change"
            )
        }
        var session = try HostSession(try targets(), settings: settings)
        if !once { Printer.exitWhenReaderLeaves() }
        let status = try await session.run()
        if status != .yes { throw status.exitCode }
    }

    private var settings: HostSession.Settings {
        HostSession.Settings(
            format: format,
            isLive: live,
            isOnce: once,
            count: count,
            until: until.map { $0 == .up ? .reachable : .notReachable },
            isAny: any,
            timeout: timeout.flatMap { $0 > .zero ? $0 : nil },
            probe: probe,
            interval: interval ?? .seconds(30)
        )
    }

    private func targets() throws(CommandError) -> [PathTarget] {
        let hosts = try HostList.reading(hosts, from: hostsFrom)
        return hosts.isEmpty ? [.general] : hosts.map(PathTarget.host)
    }
}

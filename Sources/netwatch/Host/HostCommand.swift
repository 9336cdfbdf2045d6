internal import ArgumentParser
internal import NetwatchService
internal import NetworkReachability

/// The `netwatch host` command.
struct HostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "host",
        abstract: "Watch whether hosts are reachable, and print one line per change.",
        discussion: """
            netwatch host example.com
            netwatch host example.com 2001:db8::1 --live
            netwatch host --hosts-from hosts.txt --format json
            netwatch host --once && echo online
            netwatch host server.internal --until up --timeout 5m
            netwatch host db.internal --probe tcp:5432 --interval 10s
            netwatch host api.example.com --probe https --once --verbose

            Without HOST, the command watches the path to the public Internet. A host is reachable if the kernel \
            has a route to it, the interface has a carrier, and there is a usable source address. The command \
            only sends DNS queries, so it does not find out whether the host responds.

            With --probe, the command also probes each host over its path: when the path is found or changes, \
            and then at intervals. A tcp probe connects and closes the connection. An http or https probe sends \
            a HEAD request for /; any status from \(ProbeChoice.expectedStatus.lowerBound) to \
            \(ProbeChoice.expectedStatus.upperBound) is a success. The state of a probed host is up, down, or \
            degraded (a captive portal responds instead of the host). --once and --until use this state.

            The file of --hosts-from has one host per line. Blank lines, and everything after a #, are ignored. \
            If any line is invalid, the command reports the line with the reason and does not start. At most \
            \(HostList.limit) hosts are watched. A host that is named twice is watched once.

            With text output, SIGINT (Ctrl-C), SIGTERM, and q with --live print a summary of each host before the \
            command ends: its state, the number of changes, and for how much of the time it was reachable. Time in \
            which the state was unknown does not count. With --probe, the summary also has the number of probes, of \
            successes, and percentiles of the latencies.

            Exit status with --once: 0 if every host is reachable, 1 if any host is not reachable, 2 if the \
            state of any host is unknown and no host is unreachable. With --until: 0 when the state is reached, \
            1 after the timeout, or when --count or q ends the command before. With --count or q alone: 0. \
            Otherwise the command runs until a signal ends it.
            """
    )

    @Argument(help: "Host names or addresses, without scheme, port, path or brackets.")
    var hosts: [String] = []

    @Option(help: "A file of hosts, one per line; - for standard input.")
    var hostsFrom: ArgumentBytes?

    @Flag(help: "Print the current state of every host once, and exit with 0, 1 or 2.")
    var once = false

    @Option(name: .shortAndLong, help: "Exit after this number of lines, at least 1. Default: no limit.")
    var count: Int?

    @Option(
        help: "Exit when all hosts are reachable (up) or not reachable (down); an unknown state is neither."
    )
    var until: Until?

    @Flag(help: "With --until: exit as soon as one host is in that state.")
    var any = false

    @Option(
        name: .shortAndLong,
        help: "With --until: how long to wait, like 500ms, 5s, 2m or 1h30m. Default: 0, no limit.",
        transform: Duration.argument
    )
    var timeout: Duration?

    @Option(
        name: .shortAndLong,
        help: "The probe: tcp[:PORT], by default port 443; http[:PORT]; https[:PORT]; or route for no probe.",
        transform: ProbeChoice.argument
    )
    var probe = ProbeChoice.route

    @Option(
        name: .shortAndLong,
        help: "With --probe: the interval between probes of the same path, at least 1s, ± 10 %. Default 30s.",
        transform: Duration.argument
    )
    var interval: Duration?

    @Flag(name: .shortAndLong, help: "With an http or https probe: print how long its steps took.")
    var verbose = false

    @Flag(help: "Show a table that is updated in place, instead of lines; q ends it. Requires a terminal.")
    var live = false

    @Option(name: .shortAndLong, help: "The output format: text, or json for one object per line.")
    var format = OutputFormat.text

    @OptionGroup var color: ColorOption

    /// The state that `--until` waits for.
    enum Until: String, ExpressibleByArgument, CaseIterable {
        case up, down
    }

    func validate() throws {
        if let count, count < 1 { throw ValidationError("`--count` is \(count); it must be at least 1") }
        if any, until == nil { throw ValidationError("`--any` requires `--until`") }
        if timeout != nil, until == nil { throw ValidationError("`--timeout` requires `--until`") }
        if once, count != nil || until != nil || live {
            throw ValidationError("`--once` cannot be combined with `--count`, `--until` or `--live`")
        }
        if let interval, probe == .route || interval < .seconds(1) {
            throw ValidationError(
                probe == .route
                    ? "`--interval` requires `--probe`"
                    : "`--interval` is \(Printer.quoted(DurationText.exact(interval))); it must be at least 1s"
            )
        }
        if verbose, !probe.measuresPhases {
            throw ValidationError("`--verbose` requires `--probe` with `http` or `https`")
        }
        if live, verbose { throw ValidationError("`--live` cannot be combined with `--verbose`") }
        if live, count != nil || format != .text {
            throw ValidationError("`--live` cannot be combined with `--count` or `--format json`")
        }
    }

    mutating func run() async throws {
        if live, !Terminal.isAvailable {
            throw CommandError(
                .usage,
                "`--live` needs a terminal, but standard output is not one",
                hint: "without `--live`, one line is printed per change"
            )
        }
        if live, !Terminal.canMoveCursor {
            throw CommandError(
                .usage,
                "`--live` needs a terminal that can move the cursor; `TERM` is not set, empty or `dumb`",
                hint: "without `--live`, one line is printed per change"
            )
        }
        var session = try HostSession(try targets(), settings: settings)
        if !once { Printer.exitWhenReaderExits() }
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
            interval: interval ?? PathValidator.defaultInterval,
            showsPhases: verbose
        )
    }

    private func targets() throws(CommandError) -> [PathTarget] {
        let hosts = try HostList.reading(hosts, from: hostsFrom)
        return hosts.isEmpty ? [.general] : hosts.map(PathTarget.host)
    }
}

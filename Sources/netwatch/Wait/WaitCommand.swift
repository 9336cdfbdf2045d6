internal import ArgumentParser
internal import NetworkReachability

/// The `netwatch wait` command.
struct WaitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Wait until this machine is online, or until hosts can be reached.",
        discussion: """
            netwatch wait && echo online
            netwatch wait --host db.internal --host api.example.com --timeout 5m
            netwatch wait --host 192.0.2.1 --host 192.0.2.2 --any --stable 2s
            netwatch wait --for carrier --interface eth0
            netwatch wait --host db.internal --for verified --probe tcp:5432
            netwatch wait --for verified --check-url http://connectivity.example/204

            Without --host the way to the public Internet in general is waited for. As with `netwatch host`, \
            the kernel's routes, carrier and source addresses answer, and nothing but DNS queries is sent; \
            unless it is --for verified, when each host is probed until it answers (see `netwatch host \
            --help`), or, without --host, a URL that is known to answer 204, which tells a captive portal \
            from the Internet.

            Nothing is printed when it has come, unless -v is given. When the time is over, what is missing \
            is named on standard error. Time goes on while the machine sleeps.

            Exit status: 0 online, 1 timed out, 2 could not tell, 64 wrong arguments.
            """
    )

    /// The condition to wait for.
    enum Goal: String, ExpressibleByArgument, CaseIterable {
        /// An interface has a carrier, i.e. the cable is plugged in.
        case carrier
        /// There is a route.
        case routable
        /// A response arrived over the route.
        case verified
    }

    @Option(name: .customLong("host"), help: "A host to wait for. Repeatable; all of them are waited for.")
    var hosts: [String] = []

    @Flag(help: "One of the hosts, or of the interfaces with --for carrier, is enough.")
    var any = false

    @Option(
        name: .customLong("for"),
        help: "What to wait for: carrier, the cable of an interface; routable, a way; verified, an answer."
    )
    var goal = Goal.routable

    @Option(
        name: .shortAndLong,
        help: "With --for verified and --host: tcp[:PORT], default 443; http[:PORT]; https[:PORT].",
        transform: ProbeChoice.argument
    )
    var probe: ProbeChoice?

    @Option(name: .customLong("check-url"), help: "With --for verified and no --host: what answers 204.")
    var checkURL: String?

    @Option(
        name: [.customShort("i"), .customLong("interface")],
        help: "The interface that has to have the carrier, or by which the way has to lead. Repeatable."
    )
    var interfaces: [String] = []

    @Option(
        help: "For how long it has to last, by the same way and without interruption. Default 0.",
        transform: Duration.argument
    )
    var stable: Duration = .zero

    @Option(
        name: .shortAndLong,
        help: "How long to wait, as 500ms, 5s, 2m, 1h30m; 0 for ever. Default 120s.",
        transform: Duration.argument
    )
    var timeout: Duration = .seconds(120)

    @Flag(name: .shortAndLong, help: "Say on standard error what has come, and how long it took.")
    var verbose = false

    func validate() throws {
        if goal == .carrier, !hosts.isEmpty { throw ValidationError("`--for carrier` excludes `--host`") }
        if any, goal == .carrier ? interfaces.isEmpty : hosts.isEmpty {
            throw ValidationError("`--any` goes with `--host`, or with `--interface` and `--for carrier`")
        }
        if probe == .route || (probe != nil && (goal != .verified || hosts.isEmpty)) {
            throw ValidationError("`--probe` sends something, and goes with `--for verified` and `--host`")
        }
        if checkURL != nil, goal != .verified || !hosts.isEmpty {
            throw ValidationError("`--check-url` goes with `--for verified`, without `--host`")
        }
        if goal == .verified, hosts.isEmpty, checkURL == nil {
            throw ValidationError("`--for verified` needs `--host`, or `--check-url`")
        }
        if timeout > .zero, stable > timeout {
            throw ValidationError("`--stable` is longer than `--timeout`, so it could never be fulfilled")
        }
    }

    mutating func run() async throws {
        var session = try WaitSession(
            WaitSession.Settings(
                hosts: try HostList.reading(hosts, from: nil),
                goal: goal,
                interfaces: interfaces,
                isAny: any,
                stable: stable,
                timeout: timeout > .zero ? timeout : nil,
                probe: goal == .verified ? probe ?? .tcp(port: 443) : .route,
                checkURL: checkURL
            )
        )
        let (words, duration) = try await session.run()
        guard verbose else { return }
        for word in words { Printer.note(Printer.printable(word)) }
        Printer.note("waited for \(DurationText.words(duration))")
    }
}

internal import ArgumentParser
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// The `netwatch wait` command.
struct WaitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Wait until this machine is online, or until hosts are reachable.",
        discussion: """
            netwatch wait && echo online
            netwatch wait --host db.internal --host api.example.com --timeout 5m
            netwatch wait --host 192.0.2.1 --host 192.0.2.2 --any --stable 2s
            netwatch wait --for carrier --interface eth0
            netwatch wait --host db.internal --for verified --probe tcp:5432
            netwatch wait --for verified --check-url http://connectivity.example/204

            Without --host, the command waits for a path to the public Internet. As with `netwatch host`, the \
            path follows from the kernel's routes, carriers and source addresses. Without --for verified, the command \
            sends only DNS queries.

            With --for verified, the command also waits for a response. With --host, it probes each host until \
            the host responds (see `netwatch host --help`). Without --host, it requests the URL of --check-url. \
            Its server must respond with 204 or an empty 200. A captive portal would send another response. If the \
            URL is on this machine, a path to the public Internet is not necessary.

            Nothing is printed on success, unless -v is given. After the timeout, the unmet conditions are \
            printed on standard error. The timeout also counts time during which the machine sleeps.

            Exit status: 0 if the condition is met, 1 after the timeout, 2 if the state cannot be determined, 64 \
            for wrong arguments.
            """
    )

    /// The condition to wait for.
    enum Goal: String, ExpressibleByArgument, CaseIterable {
        /// An interface has a carrier, i.e. its link partner is connected.
        case carrier
        /// The kernel has a usable path.
        case routable
        /// A response arrived over the path.
        case verified
    }

    @Option(
        name: .customLong("host"),
        help: "A host to wait for. Repeatable; by default all of them must be reachable."
    )
    var hosts: [String] = []

    @Flag(help: "Wait for one of the hosts instead of all; with --for carrier, for one of the interfaces.")
    var any = false

    @Option(
        name: .customLong("for"),
        help:
            "What to wait for. carrier: a connected link; routable: a path; verified: a path and a response."
    )
    var goal = Goal.routable

    @Option(
        name: .shortAndLong,
        help: "With --for verified and --host: tcp[:PORT], http[:PORT] or https[:PORT]. Default tcp:443.",
        transform: ProbeChoice.argument
    )
    var probe: ProbeChoice?

    @Option(
        name: .customLong("check-url"),
        help: "With --for verified and no --host: the URL to request, which must return 204 or an empty 200."
    )
    var checkURL: String?

    @Option(
        name: [.customShort("i"), .customLong("interface")],
        help: "The interface that must have the carrier, or that the path must use. Repeatable."
    )
    var interfaces: [String] = []

    @Option(
        help: "How long the condition must last, over the same path and without interruption. Default 0.",
        transform: Duration.argument
    )
    var stable: Duration = .zero

    @Option(
        name: .shortAndLong,
        help: "How long to wait, like 500ms, 5s, 2m or 1h30m; 0 for no limit. Default 120s.",
        transform: Duration.argument
    )
    var timeout: Duration = .seconds(120)

    @Flag(name: .shortAndLong, help: "Print the final state and the duration of the wait on standard error.")
    var verbose = false

    func validate() throws {
        if goal == .carrier, !hosts.isEmpty {
            throw ValidationError("`--for carrier` cannot be combined with `--host`")
        }
        let longest = InterfaceName.maximumBytes
        for name in interfaces where !(1...longest).contains(name.utf8.count) {
            throw ValidationError(
                "`--interface` is \(Printer.quoted(name)); 1 to \(longest) bytes are accepted"
            )
        }
        if any, goal == .carrier ? interfaces.isEmpty : hosts.isEmpty {
            throw ValidationError("`--any` requires `--host`, or `--interface` and `--for carrier`")
        }
        if probe == .route { throw ValidationError("`--probe` must not be `route`") }
        if probe != nil, goal != .verified { throw ValidationError("`--probe` requires `--for verified`") }
        if probe != nil, hosts.isEmpty { throw ValidationError("`--probe` requires `--host`") }
        if checkURL != nil, goal != .verified || !hosts.isEmpty {
            throw ValidationError(
                "`--check-url` requires `--for verified`, and cannot be combined with `--host`"
            )
        }
        if goal == .verified, hosts.isEmpty, checkURL == nil {
            throw ValidationError("`--for verified` requires `--host` or `--check-url`")
        }
        if timeout > .zero, stable > timeout {
            throw ValidationError(
                "`--stable` is `\(DurationText.exact(stable))`; it must not be longer than `--timeout`, which is "
                    + "`\(DurationText.exact(timeout))`"
            )
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
        let (summaries, duration) = try await session.run()
        guard verbose else { return }
        for summary in summaries { Printer.note(Printer.printable(summary)) }
        Printer.note("waited for \(DurationText.format(duration))")
    }
}

internal import ArgumentParser
internal import NetworkReachability

/// `netwatch host`
struct HostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "host",
        abstract: "Watch whether packets can leave for a host; one line per change.",
        discussion: """
            netwatch host example.com
            netwatch host 2001:db8::1 --format json
            netwatch host --once && echo online

            The answer is the kernel's: its routes, the carrier of the interface, a usable source address.
            Nothing but DNS queries is sent, so it does not say whether the host would answer. Without HOST
            the way to the public Internet in general is watched.

            Exit status with --once: 0 reachable, 1 not reachable, 2 unknown.
            """
    )

    @Argument(help: "A host name or an address, without scheme, port, path or brackets.")
    var host: String?

    @Flag(help: "Print the present state and exit with 0, 1 or 2.")
    var once = false

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object per line.")
    var format = OutputFormat.text

    mutating func run() async throws {
        let monitor = PathMonitor.shared
        var report = HostReport(format: format)
        if !once { Printer.exitWhenReaderLeaves() }
        for await status in monitor.statuses(of: try target()) {
            if let failure = monitor.failure { warn(failure) }
            report.print(status)
            if once { throw status.exitStatus.exitCode }
        }
    }

    private func target() throws(CommandError) -> PathTarget {
        guard let text = host else { return .general }
        guard let host = NetworkHost(text) else {
            throw CommandError(
                .usage,
                "`\(text)` is not a host",
                hint: "give \(NetworkHost.acceptedForms)"
            )
        }
        return .host(host)
    }

    private func warn(_ failure: SystemError) {
        Printer.warning("netlink is unavailable (\(failure)), so reachability is unknown")
    }
}

/// How data is printed.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case text
    case json
}

extension PathStatus {
    fileprivate var exitStatus: ExitStatus {
        switch verdict {
        case .reachable: .yes
        case .notReachable: .no
        case .unknown: .unknown
        }
    }
}

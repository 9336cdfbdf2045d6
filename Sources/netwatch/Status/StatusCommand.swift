internal import ArgumentParser
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// The `netwatch status` command.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the network, the resolver, the queue and the service, once.",
        discussion: """
            netwatch status
            netwatch status --format json
            netwatch status --check-queue >/dev/null || echo look

            The command itself looks up the path to the Internet and the interfaces. The queue, the name \
            servers, and the names with the age of their addresses come from the service. They are missing if \
            the service is not running or does not respond in time. A line `config` says if the service does not use \
            its configuration files, and a line `store` if a scan has found damage in the queue, or if its disk is full.

            Exit status: 0 if the public Internet is reachable, 1 if not, 2 if that is unknown. With \
            --check-queue: 1 also if the queue needs attention, because it is paused or damaged, its disk is full, or \
            it has held or dead requests; otherwise 2 also if the service does not respond.
            """
    )

    @Option(
        name: .shortAndLong,
        help: "How long the service may take to respond, like 500ms or 5s. Default 200ms.",
        transform: Duration.argument(in: .milliseconds(1)...(.seconds(9999 * 3600)), "1ms to 9999h")
    )
    var timeout: Duration = .milliseconds(200)

    @Flag(help: "End with 1 if the queue needs attention, and with 2 if its state is unknown.")
    var checkQueue = false

    @Option(name: .shortAndLong, help: "The output format: text, or json (a single JSON object).")
    var format = OutputFormat.text

    @OptionGroup var service: ServiceOptions

    mutating func run() async throws {
        let socket = try service.path()
        async let summary = ServiceSummary.asking(socket, timeout: timeout)
        let report = StatusReport(Self.snapshot(), service: await summary)
        switch format {
        case .text: Printer.rows(report.lines, indent: StatusReport.indent)
        case .json: Printer.json(report, with: ControlMessage.encoder)
        }
        let status = exitStatus(of: report)
        if status != .yes { throw status.exitCode }
    }

    private func exitStatus(of report: StatusReport) -> ExitStatus {
        var findings = [report.path.reachability.exitStatus]
        if checkQueue { findings.append(report.service.queueStatus) }
        return [ExitStatus.no, .unknown].first { findings.contains($0) } ?? .yes
    }

    /// Returns the path to the Internet and the interfaces, and warns if netlink is unavailable. There are then no
    /// interfaces, and the path reports the reason.
    private static func snapshot() -> NetworkSnapshot {
        let snapshot = PathMonitor.shared.snapshot
        if let failure = PathMonitor.shared.failure {
            Printer.warning("netlink is unavailable (\(failure)), so reachability is unknown")
        }
        return snapshot
    }
}

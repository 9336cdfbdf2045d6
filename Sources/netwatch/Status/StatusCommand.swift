internal import ArgumentParser
internal import Foundation
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

/// The output of `netwatch status`.
struct StatusReport: Encodable {
    struct Interface: Encodable {
        var name: String
        var index: UInt32
        /// `up`, `noCarrier` or `down`.
        var state: String
        /// Addresses with their prefix lengths.
        var addresses: [String]
    }

    var v = ControlMessage.version
    var type = "status"
    var time: Date
    var path: HostLine
    var interfaces: [Interface]
    var service: ServiceSummary

    init(_ snapshot: NetworkSnapshot, service: ServiceSummary, time: Date = Date()) {
        self.time = time
        self.service = service
        var path = HostLine(snapshot.general, time: time)
        path.type = "path"
        self.path = path
        interfaces = snapshot.interfaces.map { interface in
            Interface(
                name: interface.name,
                index: interface.index,
                state: LinkState(interface).rawValue,
                addresses: interface.sortedAddresses.map { "\($0.text)/\($0.prefixLength)" }
            )
        }
    }

    /// The report for people.
    var lines: [String] {
        var lines = [line("path", path.statusText)]
        for (index, interface) in interfaces.enumerated() {
            lines.append(line(index == 0 ? "interfaces" : "", summary(interface)))
        }
        if let audit = service.auditText { lines.append(line("audit", audit)) }
        lines += nameLines
        if let queue = service.queueText(now: time) { lines.append(line("queue", queue)) }
        if let store = service.storeText { lines.append(line("store", store)) }
        lines.append(line("service", service.summary))
        return lines + (service.configurationText.map { [line("config", $0)] } ?? [])
    }

    private var nameLines: [String] {
        guard let report = service.names.map(NamesReport.init) else { return [] }
        let names = report.lines.enumerated().map { line($0 == 0 ? "names" : "", $1) }
        return [line("resolver", report.resolver)] + names
    }

    /// The column in which the texts begin.
    static let indent = 12

    private func line(_ name: String, _ text: String) -> String {
        name.padded(to: Self.indent - 2) + "  " + text
    }

    private func summary(_ interface: Interface) -> String {
        let width = interfaces.map(\.name.count).max() ?? 0
        let state = LinkState(rawValue: interface.state)?.summary ?? interface.state
        let addresses = interface.addresses.joined(separator: " ")
        let text = [interface.name.padded(to: min(width, 15)), state.padded(to: 10), addresses]
        return text.joined(separator: "  ").trimmingCharacters(in: .whitespaces)
    }
}

/// The part of the output of `netwatch status` that is about the resolver.
struct NamesReport {
    /// The maximum number of names in the output, so that all of it fits on a screen.
    private static let mostNames = 20

    let names: ControlMessage.Names

    /// The name servers, for how long they have been silent, and the number of lookups.
    var resolver: String {
        let servers = names.nameServersError ?? names.nameServers.joined(separator: " ")
        let silence = names.silentSeconds.map { "silent for \(format($0))" }
        let lookups =
            names.lookups > 0 ? "\(CountText.format(names.lookups, "lookup")) running" : nil
        let waiting =
            names.waiting > 0 ? "\(CountText.format(names.waiting, "lookup")) waiting" : nil
        return ([servers] + [silence, lookups, waiting].compactMap(\.self)).joined(separator: ", ")
    }

    /// One line per name; names with problems come first.
    var lines: [String] {
        let sorted = names.names.filter(\.hasFailure) + names.names.filter { !$0.hasFailure }
        let shown = sorted.prefix(Self.mostNames)
        let width = min(40, shown.map(\.name.count).max() ?? 0)
        let rest = names.count - shown.count
        return shown.map { line($0, width) } + (rest > 0 ? ["and \(rest) more"] : [])
    }

    private func line(_ name: ControlMessage.Names.Name, _ width: Int) -> String {
        let age = name.ageSeconds.map { " \(format($0)) ago" } ?? ""
        let silent = name.silent ? ", silent" : ""
        let what = name.addresses.isEmpty ? name.error : name.addresses.joined(separator: " ")
        return "\(name.name.padded(to: width))  \(name.state)\(age)\(silent)" + (what.map { "  \($0)" } ?? "")
    }

    private func format(_ seconds: Double) -> String { DurationText.format(.seconds(seconds)) }
}

extension ControlMessage.Names.Name {
    fileprivate var hasFailure: Bool { silent || state == "failed" || state == "stale" }
}

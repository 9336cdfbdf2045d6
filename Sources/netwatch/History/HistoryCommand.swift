internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch history` command.
struct HistoryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Show the uptime, latency and outages of the watched hosts.",
        discussion: """
            netwatch history
            netwatch history api --window 30d
            netwatch history api --format json | jq .uptime

            The service records the history of the hosts in its configuration. The first line of symbols shows \
            the states: `█` up, `▄` up for a part of the time, `x` host down, `-` own link down, `·` unknown. The \
            second one shows the median latency on a logarithmic scale. Uptime counts only time in which this \
            machine had a path to the host.

            Exit status: 0 if the history was printed; 1 if the service watches no such host; 69 if the service \
            is not running.
            """
    )

    @Argument(help: "The name of a watched host. Default: all hosts.")
    var host: String?

    @Option(
        help: .init(
            "The time to show: \(HistoryWindow.allCases.map(\.rawValue).joined(separator: ", ")). Default 24h.",
            valueName: "window"
        ),
        transform: Self.window
    )
    var window = HistoryWindow.day

    @Option(name: .shortAndLong, help: "The output format: text, or json for one object per host.")
    var format = OutputFormat.text

    @OptionGroup var color: ColorOption

    @OptionGroup var service: ServiceOptions

    private static func window(_ text: String) throws -> HistoryWindow {
        guard let window = HistoryWindow(rawValue: text) else {
            let accepted = HistoryWindow.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
            throw ValidationError("\(Printer.quoted(text)) is not a window; accepted: \(accepted)")
        }
        return window
    }

    func validate() throws {
        if host?.isEmpty == true { throw ValidationError("the host must not be empty") }
    }

    mutating func run() async throws {
        let client = ServiceClient(path: try service.path())
        let watched = try await client.get("/v1/hosts", as: ControlMessage.Hosts.self).hosts
        for host in try selected(from: watched) {
            let history = try await client.get(
                "/v1/hosts/\(host.name.urlEscaped)/history?window=\(window.rawValue)",
                as: ControlMessage.History.self
            )
            switch format {
            case .json: Printer.json(HistoryLine(history: history), with: ControlMessage.encoder)
            case .text: for line in HistoryReport(host, history).lines { Printer.line(line) }
            }
        }
    }

    private func selected(from watched: [ControlMessage.Host]) throws(CommandError) -> [ControlMessage.Host] {
        guard let host else {
            if watched.isEmpty { Printer.note("the service watches no hosts") }
            return watched
        }
        let found = watched.filter { $0.name == host }
        guard found.isEmpty else { return found }
        throw CommandError(
            .no,
            "the service watches no host \(Printer.quoted(host))",
            hint: Self.hint(for: host, among: watched.map(\.name))
        )
    }

    private static func hint(for host: String, among names: [String]) -> String {
        if names.isEmpty { return "it watches no hosts" }
        if let name = NameSuggestion.name(for: host, among: names) {
            return "did you mean \(Printer.quoted(name))?"
        }
        return "it watches \(names.map { Printer.quoted($0) }.joined(separator: ", "))"
    }
}

/// The JSON output for a host: the response of the service, and the type of the line.
struct HistoryLine: Encodable {
    let history: ControlMessage.History

    private enum CodingKeys: String, CodingKey {
        case type
    }

    func encode(to encoder: any Encoder) throws {
        try history.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode("history", forKey: .type)
    }
}

/// The history of a host for people.
struct HistoryReport {
    private let host: ControlMessage.Host
    private let history: ControlMessage.History
    private let window: Int?
    private let now: Date

    /// The minimum number of steps that a symbol stands for, so that the symbols of each window fit into 80 columns.
    private static let leastStepsPerSymbol = 2
    /// The maximum number of outages.
    private static let mostOutages = 10
    private static let levels = Array("▁▂▃▄▅▆▇█")

    /// - Parameter window: The terminal's columns; `nil` without a terminal. Default: the columns of standard output.
    init(
        _ host: ControlMessage.Host,
        _ history: ControlMessage.History,
        window: Int? = Terminal.window,
        now: Date = Date()
    ) {
        self.host = host
        self.history = history
        self.window = window
        self.now = now
    }

    /// The lines of the report. No line is wider than the window, unless it contains a single word that is.
    var lines: [StyledText] {
        let outages = history.outages.prefix(Self.mostOutages).map { Self.margin + line(of: $0) }
        let more = history.outages.count - outages.count
        let texts = outages + (more > 0 ? [Self.margin + "and \(more) more"] : [])
        let rest =
            [Self.margin + states, Self.margin + latencies]
            + texts.flatMap { $0.wrapped(to: window, indent: 2 * Self.margin.count) }
        return summary + rest.map { StyledText($0) }
    }

    /// The space before each line except the summary.
    private static let margin = "  "

    private var summary: [StyledText] {
        let uptime = history.uptime.map { "\(TextFormat.percentage($0)) up in \(history.window)" }
        let median = history.p50Seconds.map { "p50 \(TextFormat.latency($0 * 1000))" }
        let slow = history.p95Seconds.map { "p95 \(TextFormat.latency($0 * 1000))" }
        let cause = host.cause.map { " (\($0))" } ?? ""
        let parts = [cause, uptime, median, slow].compactMap(\.self)
        let name = host.name + "  "
        let text = "\(name)\(host.state)\(parts.joined(separator: ", "))  \(host.check)"
        let rows = text.wrapped(to: window, indent: name.count)
        let rest = rows[0].dropFirst(name.count + host.state.count)
        let first = StyledText(name) + StyledText(state: host.state) + StyledText(String(rest))
        return [first] + rows.dropFirst().map { StyledText($0) }
    }

    // MARK: Symbols

    private var groups: [ArraySlice<ControlMessage.History.Step>] {
        let (steps, size) = (history.steps, stepsPerSymbol)
        return stride(from: 0, to: steps.count, by: size).map { steps[$0..<min($0 + size, steps.count)] }
    }

    /// The number of steps that a symbol stands for, so that a line of symbols fits into the window.
    private var stepsPerSymbol: Int {
        guard let window else { return Self.leastStepsPerSymbol }
        let room = max(1, window - Self.margin.count)
        return max(Self.leastStepsPerSymbol, (history.steps.count + room - 1) / room)
    }

    private var states: String {
        String(groups.map { Self.symbol(of: $0) })
    }

    private static func symbol(of steps: ArraySlice<ControlMessage.History.Step>) -> Character {
        let up = steps.reduce(0) { $0 + $1.upSeconds }
        let remote = steps.reduce(0) { $0 + $1.remoteSeconds }
        let local = steps.reduce(0) { $0 + $1.localSeconds }
        if up + remote + local == 0 { return "·" }
        if remote >= up, remote >= local { return "x" }
        if local >= up { return "-" }
        return remote > 0 || local > 0 ? "▄" : "█"
    }

    private var latencies: String {
        let values = groups.map { steps in steps.compactMap(\.p50Seconds).max() }
        let known = values.compactMap(\.self)
        guard let least = known.min(), let most = known.max(), most > least else {
            return String(values.map { $0 == nil ? " " : "▁" })
        }
        let top = Double(Self.levels.count - 1)
        return String(
            values.map { value in
                value.map { Self.levels[Int((log($0 / least) / log(most / least) * top).rounded())] } ?? " "
            }
        )
    }

    // MARK: Texts

    private func line(of outage: ControlMessage.History.Outage) -> String {
        let length = DurationText.format(.seconds((outage.end ?? now).timeIntervalSince(outage.start)))
        let cause = outage.cause == "local" ? "own link down" : "host down"
        let progress = outage.end == nil ? " so far" : ""
        let reason = outage.reason.map { ": " + Printer.printable($0) } ?? ""
        return "\(outage.start.rfc3339.prefix(16))Z  \(cause) for \(length)\(progress)\(reason)"
    }
}

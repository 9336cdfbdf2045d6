internal import ArgumentParser
internal import Foundation
internal import NetwatchService

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

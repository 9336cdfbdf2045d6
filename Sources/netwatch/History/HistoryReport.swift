internal import Foundation
internal import NetwatchService

/// The history of a host for people.
struct HistoryReport {
    private let host: ControlMessage.Host
    private let history: ControlMessage.History
    private let now: Date

    /// The number of steps that a symbol stands for, so that a line fits into 80 columns.
    private static let stepsPerSymbol = 2
    /// The maximum number of outages.
    private static let mostOutages = 10
    private static let levels = Array("▁▂▃▄▅▆▇█")

    init(_ host: ControlMessage.Host, _ history: ControlMessage.History, now: Date = Date()) {
        self.host = host
        self.history = history
        self.now = now
    }

    var lines: [StyledText] {
        let outages = history.outages.prefix(Self.mostOutages).map { "  " + line(of: $0) }
        let more = history.outages.count - outages.count
        let rest = ["  " + states, "  " + latencies] + outages + (more > 0 ? ["  and \(more) more"] : [])
        return [summary] + rest.map { StyledText($0) }
    }

    private var summary: StyledText {
        let uptime = history.uptime.map { "\(TextFormat.percentage($0)) up in \(history.window)" }
        let median = history.p50Seconds.map { "p50 \(TextFormat.latency($0 * 1000))" }
        let slow = history.p95Seconds.map { "p95 \(TextFormat.latency($0 * 1000))" }
        let cause = host.cause.map { " (\($0))" } ?? ""
        let parts = [cause, uptime, median, slow].compactMap(\.self)
        return StyledText(host.name + "  ") + StyledText(state: host.state)
            + StyledText("\(parts.joined(separator: ", "))  \(host.check)")
    }

    // MARK: Symbols

    private var groups: [ArraySlice<ControlMessage.History.Step>] {
        stride(from: 0, to: history.steps.count, by: Self.stepsPerSymbol).map { start in
            history.steps[start..<min(start + Self.stepsPerSymbol, history.steps.count)]
        }
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
        let lasts = outage.end == nil ? ", lasts" : ""
        let reason = outage.reason.map { ": " + Printer.printable($0) } ?? ""
        return "\(outage.start.rfc3339.prefix(16))Z  \(cause) for \(length)\(lasts)\(reason)"
    }
}

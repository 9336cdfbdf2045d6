internal import Foundation

/// The row of a host on the status page.
struct HostRow {
    let host: ControlMessage.Host
    let timeline: HistoryTimeline

    var html: HTML {
        """
        <tr><th scope="row">\(host.name)<span class="note">\(host.check)</span></th>\
        <td><span class="state \(style)">\(symbol) \(word)</span>\(detail)</td>\
        <td>\(HistoryGraphics(timeline: timeline).bars)</td>\
        <td>\(latency)\(quantiles)\(HistoryGraphics(timeline: timeline).sparkline)</td>\
        <td class="part">\(percentage(host.uptime.day))</td><td class="part">\(percentage(host.uptime.week))</td>\
        <td class="part">\(percentage(host.uptime.month))</td></tr>
        """
    }

    /// The class in the style sheet.
    private var style: String {
        switch host.state {
        case "down": host.cause ?? "remote"
        case "degraded": "partly"
        default: host.state
        }
    }

    private var symbol: String {
        switch host.state {
        case "up": "●"
        case "degraded": "◐"
        case "down": "✕"
        default: "?"
        }
    }

    private var word: String {
        host.cause == "local" ? "own link down" : host.state
    }

    private var detail: HTML {
        let since = host.state == "down" ? host.since.map { "since \(TextFormat.time($0))" } : nil
        let text = [host.reason, since].compactMap(\.self).joined(separator: ", ")
        return text.isEmpty ? "" : "<span class=\"note\">\(text)</span>"
    }

    private var latency: String {
        host.latencySeconds.map { TextFormat.latency($0 * 1000) } ?? "–"
    }

    /// The quantiles of the latency in the last 24 hours.
    private var quantiles: HTML {
        let latencies = timeline.total.latencies
        guard let median = latencies.quantile(0.5), let slow = latencies.quantile(0.95) else { return "" }
        let texts = [median, slow].map { TextFormat.latency($0 / .milliseconds(1)) }
        return "<span class=\"note part\">p50 \(texts[0]), p95 \(texts[1])</span>"
    }

    private func percentage(_ part: Double?) -> String {
        part.map(TextFormat.percentage) ?? "–"
    }
}

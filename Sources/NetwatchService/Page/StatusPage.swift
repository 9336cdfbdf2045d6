internal import Foundation
internal import OfflineQueue

/// The status page. Works without a script; the script only loads it again.
struct StatusPage {
    let status: ControlMessage.Status
    let hosts: [(host: ControlMessage.Host, timeline: HistoryTimeline)]
    /// The newest first.
    let outages: [HostHistory.Outage]
    let closedLanes: [QueueStatistics.ClosedLane]
    /// Whether the page names the origins of the closed lanes. If not, it has only their number: the origins show which
    /// servers other users send requests to.
    let namesOrigins: Bool
    /// Whether the history can be recorded.
    let hasHistory: Bool
    /// The time and the result of the last reload of the configuration; `nil` if there was none.
    let reload: (date: Date, outcome: ConfigurationReloads.Outcome)?
    let now: Date

    var html: HTML {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <noscript><meta http-equiv="refresh" content="30"></noscript>
        <title>\(title)</title>
        <link rel="stylesheet" href="/page.css">
        <script src="/page.js" defer></script>
        </head>
        <body>
        <header><p class="name">netwatch</p></header>
        <main>
        <h1 class="\(isGood ? "up" : "down")">\(sentence)</h1>
        <p class="note">\(TextFormat.time(now))<span id="stale" role="status"></span></p>
        \(lastGoodNote)
        \(damageNote)
        \(fullDiskNote)
        \(hostSection)
        \(OutageList(outages: outages, now: now).html)
        \(queueSection)
        </main>
        <footer><p>netwatch \(status.version), process \(Int(status.pid)), started \
        \(TextFormat.time(status.started)). \(configuration) The same data: <a href="/v1/status">status</a>, \
        <a href="/v1/hosts">hosts</a>, <a href="/metrics">metrics</a>.</p></footer>
        </body>
        </html>

        """
    }

    private var lastGoodNote: HTML {
        guard let kept = status.lastGood else { return "" }
        return """
            <p class="remote">The service cannot use its configuration files, and uses its last good configuration, of \
            \(TextFormat.time(kept)). The service's log has the reason.</p>
            """
    }

    private var damageNote: HTML {
        guard let scan = status.scan, scan.findingCount > 0 else { return "" }
        return """
            <p class="remote">The queue is damaged: a scan has found \
            \(TextFormat.count(scan.findingCount, "problem")). <code>netwatch doctor</code> shows what to do.</p>
            """
    }

    private var fullDiskNote: HTML {
        guard status.queue.diskFull else { return "" }
        return """
            <p class="remote">The disk is full, so the queue refuses new requests, large ones first. Accepted ones are still sent.</p>
            """
    }

    /// The page is readable by every user of the machine, so it does not list the faults of the configuration.
    private var configuration: String {
        guard let (date, outcome) = reload else { return "The configuration was not reloaded since." }
        let time = TextFormat.time(date)
        return switch outcome {
        case .applied: "The configuration was reloaded at \(time)."
        case .refused: "The configuration has faults and was not reloaded at \(time); see the service's log."
        }
    }

    // MARK: Summary

    private var isGood: Bool {
        status.network.state == "reachable" && !hosts.contains { $0.host.state == "down" }
            && status.scan?.findingCount ?? 0 == 0 && !status.queue.diskFull
    }

    private var title: String {
        let network = status.network.state == "reachable" ? "online" : "offline"
        return "netwatch: \(status.network.state == "unknown" ? "unknown" : network), \(hostSummary)"
    }

    private var hostSummary: String {
        let up = hosts.count { $0.host.state == "up" || $0.host.state == "degraded" }
        return hosts.isEmpty ? "no hosts" : "\(up) of \(TextFormat.count(hosts.count, "host")) up"
    }

    private var sentence: String {
        let waiting = status.queue.requests
        let queue = waiting == 0 ? "No requests waiting" : "\(TextFormat.count(waiting, "request")) waiting"
        return "\(network). \(hostSummary.prefix(1).uppercased() + hostSummary.dropFirst()). \(queue)."
    }

    private var network: String {
        let network = status.network
        switch network.state {
        case "reachable": return "Online" + (network.interface.map { " via \($0)" } ?? "")
        case "unknown": return "Network unknown" + (network.reason.map { ": \($0)" } ?? "")
        default: return "Offline" + (network.reason.map { ": \($0)" } ?? "")
        }
    }

    // MARK: Hosts

    private var hostSection: HTML {
        guard !hosts.isEmpty else {
            return """
                <section aria-labelledby="hosts"><h2 id="hosts">Hosts</h2>
                <p>No host is watched. Add a <code>[[host]]</code> to the configuration and reload the service.</p>
                </section>
                """
        }
        return """
            <section aria-labelledby="hosts"><h2 id="hosts">Hosts</h2>
            \(historyNote)
            <div class="scroll" role="region" aria-label="table of hosts" tabindex="0"><table>
            <thead><tr><th scope="col">Host</th><th scope="col">State</th><th scope="col">Last 24 hours</th>\
            <th scope="col">Latency</th><th scope="col">24 h</th><th scope="col">7 d</th><th scope="col">30 d</th></tr>\
            </thead>
            <tbody>
            \(hosts.map { HostRow(host: $0.host, timeline: $0.timeline).html })
            </tbody></table></div>
            <p class="note legend"><span class="up">■ up</span> <span class="partly">■ partly up</span> \
            <span class="local">■ own link down</span> <span class="remote">■ host down</span> \
            <span class="unknown">■ unknown</span> Uptime counts only time in which this machine had a path to the \
            host.</p>
            </section>
            """
    }

    private var historyNote: HTML {
        hasHistory
            ? "" : "<p class=\"remote\">The history cannot be recorded; the service's log has the reason.</p>"
    }

    // MARK: Queue

    private var queueSection: HTML {
        """
        <section aria-labelledby="queue"><h2 id="queue">Queue</h2>
        \(pauseNote)
        \(queueCounts)
        <p class="note">\(oldest)</p>
        \(closedLaneSection)
        </section>
        """
    }

    private var pauseNote: HTML {
        status.queue.paused ? "<p class=\"partly\">The queue is paused.</p>" : ""
    }

    private var queueCounts: HTML {
        let counts = status.queue.counts.byName.filter { $0.value > 0 }.sorted { $0.key < $1.key }
        let items = counts.map { HTML("<div><dt>\($0.key)</dt><dd>\($0.value)</dd></div>") }
        return items.isEmpty ? "<p>The queue is empty.</p>" : "<dl>\(items)</dl>"
    }

    private var oldest: String {
        status.queue.oldest.map { "The oldest request has waited since \(TextFormat.time($0))." } ?? ""
    }

    /// The maximum number of entries of closed lanes.
    private static let mostClosed = 20

    private var closedLaneSection: HTML {
        guard !closedLanes.isEmpty else { return "" }
        guard namesOrigins else {
            let count = TextFormat.count(closedLanes.count, "closed lane")
            return "<p>\(count); next attempt \(Self.nextAttempt(closedLanes))</p>"
        }
        return closedLaneList
    }

    private static func nextAttempt(_ lanes: [QueueStatistics.ClosedLane]) -> String {
        lanes.map(\.closure.until).min().map(TextFormat.time) ?? ""
    }

    /// One entry for all lanes of an origin that wait for the same reason, without their labels.
    private var closedLaneList: HTML {
        let groups = Dictionary(grouping: closedLanes) { [$0.origin, "\($0.closure)"] }
        let sorted = groups.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        let items = sorted.prefix(Self.mostClosed).map { key, lanes in
            let count = lanes.count == 1 ? "" : " (\(lanes.count) lanes)"
            return HTML("<li>\(key[0])\(count): \(key[1]); next attempt \(Self.nextAttempt(lanes))</li>")
        }
        let rest = sorted.count - items.count
        let note: HTML = rest > 0 ? "<p class=\"note\">and \(TextFormat.count(rest, "other"))</p>" : ""
        return "<h3>Closed lanes</h3><ul>\(items)</ul>\(note)"
    }
}

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

/// The outages on the status page. Local outages that began together are one entry: this machine's link was down.
struct OutageList {
    /// The newest first.
    let outages: [HostHistory.Outage]
    let now: Date

    /// The maximum number of entries.
    private static let longest = 20
    /// Local outages that begin within this time, in milliseconds, have the same cause.
    private static let together: Int64 = 5000

    var html: HTML {
        let entries = Self.grouped(outages).prefix(Self.longest)
        let rows = entries.map { row(of: $0) }
        return """
            <section aria-labelledby="outages"><h2 id="outages">Outages, last 7 days</h2>
            \(rows.isEmpty ? "<p>None.</p>" : table(Array(rows)))
            </section>
            """
    }

    private func table(_ rows: [HTML]) -> HTML {
        """
        <div class="scroll" role="region" aria-label="table of outages" tabindex="0"><table>
        <thead><tr><th scope="col">Began</th><th scope="col">Duration</th><th scope="col">Cause</th>\
        <th scope="col">Hosts</th><th scope="col">Reason</th></tr></thead>
        <tbody>
        \(rows)
        </tbody></table></div>
        """
    }

    private func row(of group: [HostHistory.Outage]) -> HTML {
        let first = group[0]
        // A group has ended when all of its outages have.
        let ends = group.map(\.end)
        let isOver = !ends.contains(nil)
        let end =
            isOver ? ends.compactMap(\.self).max() ?? first.start : Int64(now.timeIntervalSince1970 * 1000)
        let length = TextFormat.duration(milliseconds: max(0, end - first.start))
        let cause = first.cause == .local ? "own link" : "host"
        let hosts = group.map(\.host).sorted().joined(separator: ", ")
        return """
            <tr><td>\(TextFormat.time(Date(milliseconds: first.start)))</td>\
            <td>\(length)\(isOver ? "" : " so far")</td><td class="\(first.cause.rawValue)">\(cause)</td>\
            <td>\(hosts)</td><td>\(first.reason ?? "")</td></tr>
            """
    }

    /// Groups local outages that began together.
    static func grouped(_ outages: [HostHistory.Outage]) -> [[HostHistory.Outage]] {
        var groups: [[HostHistory.Outage]] = []
        for outage in outages {
            if outage.cause == .local,
                let index = groups.lastIndex(where: { group in
                    group[0].cause == .local && abs(group[0].start - outage.start) <= together
                        && !group.contains { $0.host == outage.host }
                })
            {
                groups[index].append(outage)
            } else {
                groups.append([outage])
            }
        }
        return groups
    }
}

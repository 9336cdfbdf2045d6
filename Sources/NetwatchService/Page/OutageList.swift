internal import Foundation

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

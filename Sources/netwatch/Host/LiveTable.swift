internal import NetwatchService
internal import NetworkReachability

/// A table of hosts that is redrawn in place.
struct LiveTable {
    private var drawnRows = 0

    /// Returns the terminal output that replaces the previous table with these records.
    mutating func drawing(
        _ records: [HostRecord],
        now: ContinuousClock.Instant,
        columns: Int,
        rows: Int
    ) -> String {
        let lines = Self.lines(records, now: now, columns: columns, rows: rows)
        defer { drawnRows = lines.count }
        // If the window has become narrower since the previous drawing, the terminal has wrapped the old table into
        // more rows. The first rows of the old table then stay visible.
        return Terminal.hideCursor + "\r" + Terminal.up(drawnRows) + Terminal.clearToEnd
            + lines.map { $0 + "\r\n" }.joined()
    }

    /// Returns one line per host, as many as fit while leaving a row for the cursor. No line is wider than the window.
    static func lines(
        _ records: [HostRecord],
        now: ContinuousClock.Instant,
        columns: Int,
        rows: Int
    ) -> [String] {
        let room = max(1, rows - 1)
        let shown = records.count <= room ? records[...] : records.prefix(max(0, room - 1))
        // The last column stays free, because some terminals wrap as soon as it is written.
        let width = max(1, columns - 1)
        let hostWidth = hostWidth(shown, in: width)
        var lines = shown.map { line($0, hostWidth: hostWidth, now: now) }
        if shown.count < records.count { lines.append("… and \(records.count - shown.count) more") }
        return lines.map { String(Printer.printable($0).prefix(width)) }
    }

    private static let gap = "  "
    /// The width of the state: that of `not reachable`.
    private static let stateWidth = 13

    /// Returns the width of the hosts: at most 40 columns, and less in a window that would otherwise cut the states. 0
    /// if there is room for the states only.
    private static func hostWidth(_ records: ArraySlice<HostRecord>, in width: Int) -> Int {
        let longest = records.map { $0.target.description.count }.max() ?? 0
        return max(0, min(max(longest, 12), 40, width - gap.count - stateWidth))
    }

    private static func line(_ record: HostRecord, hostWidth: Int, now: ContinuousClock.Instant) -> String {
        let host = record.target.description.shortened(to: hostWidth).padded(to: hostWidth)
        var columns = hostWidth > 0 ? [host] : []
        if let status = record.newest, let tally = record.tally {
            columns += [
                status.stateText.padded(to: stateWidth),
                DurationText.format(tally.age(now: now)).padded(to: 12),
                status.summary(),
            ]
        } else {
            columns.append("…")
        }
        return columns.joined(separator: gap)
    }
}

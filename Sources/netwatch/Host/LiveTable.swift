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
        let width = shown.map { $0.target.description.count }.max() ?? 0
        var lines = shown.map { line($0, hostWidth: min(max(width, 12), 40), now: now) }
        if shown.count < records.count { lines.append("… and \(records.count - shown.count) more") }
        // The last column stays free, because some terminals wrap as soon as it is written.
        return lines.map { String(Printer.printable($0).prefix(max(1, columns - 1))) }
    }

    private static func line(_ record: HostRecord, hostWidth: Int, now: ContinuousClock.Instant) -> String {
        guard let status = record.newest, let tally = record.tally else {
            return record.target.description.padded(to: hostWidth) + "  …"
        }
        let columns = [
            record.target.description.padded(to: hostWidth),
            status.stateText.padded(to: 13),
            DurationText.format(tally.age(now: now)).padded(to: 12),
            status.summary,
        ]
        return columns.joined(separator: "  ")
    }
}

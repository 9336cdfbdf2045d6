internal import NetworkReachability

/// A table of hosts that is drawn again in its own place.
struct LiveTable {
    private var drawnRows = 0

    /// What is sent to the terminal to show these records in place of what was shown before.
    mutating func drawing(
        _ records: [HostRecord],
        now: ContinuousClock.Instant,
        columns: Int,
        rows: Int
    ) -> String {
        let lines = Self.lines(records, now: now, columns: columns, rows: rows)
        defer { drawnRows = lines.count }
        // The window may have become narrower: what was drawn then takes more rows, and stays above.
        return Terminal.hideCursor + "\r" + Terminal.up(drawnRows) + Terminal.clearToEnd
            + lines.map { $0 + "\r\n" }.joined()
    }

    /// One line for each host, as many as fit with one to spare for the cursor, none wider than the window.
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
        // The last column stays free: some terminals wrap as soon as it is written.
        return lines.map { String(Printer.printable($0).prefix(max(1, columns - 1))) }
    }

    private static func line(_ record: HostRecord, hostWidth: Int, now: ContinuousClock.Instant) -> String {
        guard let status = record.newest, let tally = record.tally else {
            return record.target.description.padded(to: hostWidth) + "  …"
        }
        let columns = [
            record.target.description.padded(to: hostWidth),
            status.stateWords.padded(to: 13),
            DurationText.words(tally.age(now: now)).padded(to: 12),
            status.words,
        ]
        return columns.joined(separator: "  ")
    }
}

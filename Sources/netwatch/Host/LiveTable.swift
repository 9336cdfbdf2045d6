internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// A table of hosts that is redrawn in place.
struct LiveTable {
    private var drawnRows = 0

    /// Returns the terminal output that replaces the previous table with these records.
    ///
    /// - Parameter hasColors: Whether states have colours. Default: the choice of the user.
    mutating func drawing(
        _ records: [HostRecord],
        now: BootInstant,
        columns: Int,
        rows: Int,
        hasColors: Bool = ColorChoice.showsColors(on: STDOUT_FILENO)
    ) -> String {
        let lines = Self.lines(records, now: now, columns: columns, rows: rows)
        defer { drawnRows = lines.count }
        // If the window has become narrower since the previous drawing, the terminal has wrapped the old table into
        // more rows. The first rows of the old table then stay visible.
        return Terminal.hideCursor + "\r" + Terminal.up(drawnRows) + Terminal.clearToEnd
            + lines.map { $0.rendered(withStyles: hasColors) + "\r\n" }.joined()
    }

    /// The number of rows of the smallest window in which the table has a header.
    private static let leastRowsWithHeader = 4

    /// Returns a header and one line per host, as many as fit while leaving a row for the cursor. No line is wider than
    /// the window.
    static func lines(
        _ records: [HostRecord],
        now: BootInstant,
        columns: Int,
        rows: Int
    ) -> [StyledText] {
        let hasHeader = rows >= leastRowsWithHeader
        let room = max(1, rows - (hasHeader ? 2 : 1))
        let shown = records.count <= room ? records[...] : records.prefix(max(0, room - 1))
        // The last column stays free, because some terminals wrap as soon as it is written.
        let width = max(1, columns - 1)
        let hostWidth = hostWidth(shown, in: width)
        var lines = hasHeader ? [header(hostWidth: hostWidth)] : []
        lines += shown.map { line($0, hostWidth: hostWidth, now: now) }
        if shown.count < records.count {
            lines.append(StyledText("… and \(records.count - shown.count) more"))
        }
        return lines.map { $0.shortened(to: width) }
    }

    private static let gap = "  "
    /// The width of the state: that of `not reachable`.
    private static let stateWidth = 13
    /// The width of the time since the last change of the state.
    private static let ageWidth = 12

    /// Returns the width of the hosts: at most 40 columns, and less in a window that would otherwise cut the states. 0
    /// if there is room for the states only.
    private static func hostWidth(_ records: ArraySlice<HostRecord>, in width: Int) -> Int {
        let longest = records.map { $0.target.title.count }.max() ?? 0
        let ellipsis = 1
        return max(0, min(max(longest, 12), 40, width - gap.count - stateWidth - ellipsis))
    }

    private static func header(hostWidth: Int) -> StyledText {
        let titles = ["STATE".padded(to: stateWidth), "FOR".padded(to: ageWidth), "PATH OR REASON"]
        let columns = (hostWidth > 0 ? ["HOST".shortened(to: hostWidth).padded(to: hostWidth)] : []) + titles
        return StyledText(columns.joined(separator: gap), .title)
    }

    private static func line(
        _ record: HostRecord,
        hostWidth: Int,
        now: BootInstant
    ) -> StyledText {
        let host = record.target.title.shortened(to: hostWidth).padded(to: hostWidth)
        let beginning = StyledText(hostWidth > 0 ? host + gap : "")
        guard let status = record.newest, let tally = record.tally else { return beginning + StyledText("…") }
        let rest = [
            "".padded(to: stateWidth - status.stateText.count),
            DurationText.format(tally.age(now: now)).padded(to: ageWidth),
            status.summary(),
        ]
        return beginning + StyledText(state: status.stateText) + StyledText(rest.joined(separator: gap))
    }
}

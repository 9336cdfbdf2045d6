/// The cells of a table of requests, fitted into a window.
struct QueueTableLayout {
    enum Column: String, CaseIterable {
        case id, age, size, state, method, url, tries, next, reason

        var title: String { rawValue.uppercased() }
    }

    typealias Row = [Column: String]

    private var rows: [Row]
    private var columns = Column.allCases

    /// - Parameter rows: Characters that are not printable are escaped here, before the widths are calculated.
    init(_ rows: [Row]) {
        self.rows = rows.map { $0.mapValues(Printer.printable) }
    }

    /// Returns the lines of the table, each cut to the window.
    ///
    /// - Parameter window: The number of columns; `nil` for no limit.
    func lines(withHeader: Bool, window: Int?) -> [StyledText] {
        let titles = Dictionary(uniqueKeysWithValues: columns.map { ($0, $0.title) })
        let widths = columns.map { max(withHeader ? $0.title.count : 0, width(of: $0)) }
        let header = withHeader ? [line(titles, widths) { StyledText($1, .title) }] : []
        let lines =
            header
            + rows.map { row in
                line(row, widths) { $0 == .state ? StyledText(state: $1) : StyledText($1) }
            }
        return window.map { window in lines.map { $0.shortened(to: window) } } ?? lines
    }

    /// - Parameter styled: Returns a cell with its style.
    private func line(
        _ row: Row,
        _ widths: [Int],
        styled: (Column, String) -> StyledText
    ) -> StyledText {
        let last = columns.last { row[$0]?.isEmpty == false }
        var line = StyledText("")
        for (column, width) in zip(columns, widths) {
            let cell = row[column] ?? ""
            line = line + styled(column, cell)
            // Nothing follows the last cell, so that lines do not end with spaces.
            if column == last { break }
            line = line + StyledText("".padded(to: width - cell.count) + Self.gap)
        }
        return line
    }

    /// Shortens URLs to a width. If any URL is longer, the schemes of all are left out, so that the column looks the
    /// same in each row.
    mutating func shortenURLs(to width: Int) {
        guard self.width(of: .url) > width else { return }
        change(.url) { $0.withoutScheme.shortenedURL(to: width) }
    }

    // MARK: Windows

    private static let gap = "  "
    /// The width of the URLs for which other columns are left out, if the URLs are long enough.
    private static let wantedURL = 20
    /// The minimum width of the URLs, if they are long enough.
    private static let shortestURL = 12
    /// The width of the reasons for which other columns are left out, if the reasons are long enough.
    private static let wantedReason = 40
    /// The minimum width of the reasons, if they are long enough. In a window that leaves less, they are left out.
    private static let shortestReason = 12
    /// The length of ids that are cut in the middle.
    private static let cutID = 16

    /// Shortens the cells of the columns before the reason, and leaves columns out, so that the reason is visible.
    mutating func fit(into window: Int) {
        for column in [Column.size, .tries, .method] where !hasRoom(forReason: Self.wantedReason, in: window)
        {
            leaveOut(column)
        }
        if !hasRoom(forReason: Self.wantedReason, in: window) {
            change(.id) { $0.shortenedInMiddle(to: Self.cutID) }
        }
        for column in [Column.next, .age, .reason]
        where !hasRoom(forReason: Self.shortestReason, urls: Self.shortestURL, in: window) {
            leaveOut(column)
        }
        let room = room(in: window)
        let wanted = min(Self.wantedURL, room - reasonWidth(upTo: Self.shortestReason))
        shortenURLs(to: max(Self.shortestURL, wanted, room - reasonWidth(upTo: Self.wantedReason)))
    }

    /// Returns whether a window has room for the URLs and the reasons, each up to a width.
    private func hasRoom(
        forReason width: Int,
        urls urlWidth: Int = Self.wantedURL,
        in window: Int
    ) -> Bool {
        room(in: window) >= min(urlWidth, self.width(of: .url)) + min(width, self.width(of: .reason))
    }

    /// Returns the width of the reasons, at most the given one; 0 if they are left out.
    private func reasonWidth(upTo width: Int) -> Int {
        columns.contains(.reason) ? min(width, self.width(of: .reason)) : 0
    }

    /// Returns the number of columns of a window that the other columns leave to the URLs and the reasons.
    private func room(in window: Int) -> Int {
        let others = columns.filter { $0 != .url && $0 != .reason }
        let gaps = (columns.count - 1) * Self.gap.count
        return window - gaps - others.reduce(0) { $0 + max($1.title.count, width(of: $1)) }
    }

    private func width(of column: Column) -> Int {
        rows.map { $0[column]?.count ?? 0 }.max() ?? 0
    }

    private mutating func leaveOut(_ column: Column) {
        columns.removeAll { $0 == column }
    }

    private mutating func change(_ column: Column, _ change: (String) -> String) {
        for index in rows.indices { rows[index][column] = rows[index][column].map(change) }
    }
}

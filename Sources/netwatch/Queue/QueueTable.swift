internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// A table of requests for people. It has no borders, and a header only on a terminal.
///
/// On a terminal no row is wider than the window. Elsewhere only URLs are shortened; `queue show` and JSON have them in
/// full.
struct QueueTable {
    private let requests: [ControlMessage.Listed]
    private let window: Int?
    private let now: Date

    /// - Parameter window: The terminal's columns; `nil` without a terminal. Default: the columns of standard output.
    init(
        _ requests: [ControlMessage.Listed],
        window: Int? = Terminal.window,
        now: Date = Date()
    ) {
        self.requests = requests
        self.window = window
        self.now = now
    }

    func print(withHeader: Bool) {
        for line in lines(withHeader: withHeader) { Printer.line(line) }
    }

    func lines(withHeader: Bool) -> [StyledText] {
        let idLength = window == nil ? nil : distinctIDLength
        var layout = QueueTableLayout(requests.map { row($0) { Self.shortened($0, to: idLength) } })
        if let window { layout.fit(into: window) } else { layout.shortenURLs(to: Self.defaultURLLength) }
        return layout.lines(withHeader: withHeader && window != nil, window: window)
    }

    /// The maximum length of a URL if the output is not a terminal.
    private static let defaultURLLength = 100

    // MARK: Ids

    /// The lengths of shortened ids. 13 characters nearly always identify a generated id.
    private static let shortLengths = 13...20

    /// The length at which the beginnings of the listed ids differ; `nil` if it is not one of ``shortLengths``. The
    /// commands accept such a beginning as an id, if no other request matches.
    private var distinctIDLength: Int? {
        let ids = requests.map(Self.id(of:))
        return Self.shortLengths.first { length in
            Set(ids.map { Self.shortened($0, to: length) }).count == ids.count
        }
    }

    private static func shortened(_ id: String, to length: Int?) -> String {
        guard let length, id.count > shortLengths.upperBound else { return id }
        return String(id.prefix(length))
    }

    private static func id(of request: ControlMessage.Listed) -> String {
        switch request {
        case .whole(let entry): entry.id
        case .part(let part): part.id
        }
    }

    // MARK: Cells

    /// - Parameter shortened: Returns the form of an id in the table.
    private func row(
        _ request: ControlMessage.Listed,
        _ shortened: (String) -> String
    ) -> QueueTableLayout.Row {
        switch request {
        case .whole(let entry): row(entry, shortened)
        case .part(let part):
            [
                .id: shortened(part.id), .state: part.state.rawValue, .url: part.host,
                .reason: "of another user",
            ]
        }
    }

    private func row(_ entry: QueuedRequest, _ shortened: (String) -> String) -> QueueTableLayout.Row {
        [
            .id: shortened(entry.id),
            .age: Self.span(from: entry.created, to: now),
            .size: entry.bodyBytes > 0 ? ByteText.format(entry.bodyBytes) : "",
            .state: entry.state.rawValue,
            .method: entry.method,
            .url: entry.url,
            .tries: String(entry.attempts),
            .next: next(entry),
            .reason: entry.waitsForID.map { "waits for \(shortened($0))" } ?? reason(of: entry),
        ]
    }

    /// Returns when the request is tried next; empty if that is not known.
    private func next(_ entry: QueuedRequest) -> String {
        if entry.state == .inflight { return "now" }
        guard let time = WaitText.nextAttempt(of: entry) else { return "" }
        return time > now ? "in \(Self.span(from: now, to: time))" : "now"
    }

    private func reason(of entry: QueuedRequest) -> String {
        entry.reason ?? entry.status.map { "HTTP \($0)" } ?? ""
    }

    /// Returns the time between two dates in its largest unit: `59s`, `4m`, `2h`, `3d`.
    private static func span(from start: Date, to end: Date) -> String {
        let seconds = max(0, Int(end.timeIntervalSince(start)))
        switch seconds {
        case ..<60: return "\(seconds)s"
        case ..<3600: return "\(seconds / 60)m"
        case ..<86_400: return "\(seconds / 3600)h"
        default: return "\(seconds / 86_400)d"
        }
    }

    // MARK: Summary

    /// Returns the number of requests per state. The usual states are always listed, the others only if they occur.
    static func summary(_ counts: QueueCounts) -> String {
        counts.words(always: [.pending, .inflight, .held, .delivered, .dead]).joined(separator: ", ")
    }
}

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

internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// A table of requests for people. It has no borders, and a header only on a terminal.
///
/// On a terminal no row is wider than the window. Elsewhere only URLs are shortened; `queue show` and JSON have them in
/// full.
struct QueueTable {
    private enum Column: String, CaseIterable {
        case id, age, state, method, url, tries, reason

        var title: String { rawValue.uppercased() }
    }

    private typealias Row = [Column: String]

    private let requests: [ControlMessage.Listed]
    private let window: Int?
    private let now: Date

    /// - Parameter window: The terminal's columns; `nil` without a terminal. Default: the columns of standard output.
    init(
        _ requests: [ControlMessage.Listed],
        window: Int? = Terminal.isAvailable ? Terminal.size.columns : nil,
        now: Date = Date()
    ) {
        self.requests = requests
        self.window = window
        self.now = now
    }

    func print(withHeader: Bool) {
        for line in lines(withHeader: withHeader) { Printer.line(line) }
    }

    func lines(withHeader: Bool) -> [String] {
        var rows = requests.map(row)
        let columns = window.map { fit(&rows, into: $0) } ?? Column.allCases
        if window == nil { shortenURLs(to: Self.defaultURLLength, in: &rows) }
        if withHeader, window != nil {
            rows.insert(Dictionary(uniqueKeysWithValues: columns.map { ($0, $0.title) }), at: 0)
        }
        let widths = columns.map { width(of: $0, in: rows) }
        return rows.map { row in line(columns.map { row[$0] ?? "" }, widths) }
    }

    private func row(_ request: ControlMessage.Listed) -> Row {
        switch request {
        case .whole(let entry): row(entry)
        case .part(let part): [.id: part.id, .state: part.state, .url: part.host, .reason: "of another user"]
        }
    }

    private func row(_ entry: ControlMessage.Entry) -> Row {
        [
            .id: entry.id,
            .age: Self.age(since: entry.created, now: now),
            .state: entry.state,
            .method: entry.method,
            .url: entry.url,
            .tries: String(entry.attempts),
            .reason: reason(of: entry),
        ]
    }

    private func reason(of entry: ControlMessage.Entry) -> String {
        guard let reason = entry.reason else { return entry.status.map { "HTTP \($0)" } ?? "" }
        if let due = WaitText.nextAttempt(of: entry), due > now {
            return "\(reason), next attempt \(due.rfc3339)"
        }
        // Held and paused requests wait for a user's action, not for their lane.
        guard let until = entry.laneClosedUntil, WaitText.isForLane(entry) else { return reason }
        // If `Retry-After` closed the lane, the reason already includes the status of that response.
        let cause = entry.laneClosedBy == nil ? entry.lastError.map { ": \($0)" } : nil
        return "\(reason) until \(until.rfc3339)\(cause ?? "")"
    }

    static func age(since date: Date, now: Date) -> String {
        let seconds = max(0, Int(now.timeIntervalSince(date)))
        switch seconds {
        case ..<60: return "\(seconds)s"
        case ..<3600: return "\(seconds / 60)m"
        case ..<86_400: return "\(seconds / 3600)h"
        default: return "\(seconds / 86_400)d"
        }
    }

    // MARK: Widths

    private static let gap = "  "
    /// The maximum length of a URL if the output is not a terminal.
    private static let defaultURLLength = 100
    /// The minimum width of the URLs on a terminal, if they are long enough.
    private static let shortestURL = 20
    /// The minimum width of the reasons on a terminal, if they are long enough and the window has at least 100 columns.
    private static let leastReason = 40
    /// The minimum width of the reasons, if they are long enough. In a window that leaves less, they are left out.
    private static let shortestReason = 12
    /// The minimum length of a shortened id. It nearly always identifies a generated id.
    private static let shortestID = 13

    /// Shortens the cells of the columns before the reason, so that the reason is visible.
    ///
    /// - Returns: The columns to show. In a narrow window, the number of attempts and the method are left out, in a very
    ///   narrow one also the reason.
    private func fit(_ rows: inout [Row], into window: Int) -> [Column] {
        var columns = Column.allCases
        let needed = min(width(of: .reason, in: rows), Self.leastReason)
        func room(_ rows: [Row]) -> Int {
            let others = columns.filter { $0 != .url && $0 != .reason }
            let gaps = (columns.count - 1) * Self.gap.count
            return window - gaps - others.reduce(0) { $0 + max($1.title.count, width(of: $1, in: rows)) }
        }
        let shortest = min(Self.shortestURL, width(of: .url, in: rows))
        if room(rows) < shortest + needed { shortenIDs(to: distinctIDLength(in: rows), in: &rows) }
        for column in [Column.tries, .method] where room(rows) < shortest + needed {
            columns.removeAll { $0 == column }
        }
        let isReasonShown = room(rows) - shortest >= min(needed, Self.shortestReason)
        if !isReasonShown { columns.removeAll { $0 == .reason } }
        shortenURLs(to: max(shortest, room(rows) - (isReasonShown ? needed : 0)), in: &rows)
        return columns
    }

    /// The length at which the beginnings of the listed ids differ. The commands accept such a beginning as an id, if no
    /// other request matches.
    private func distinctIDLength(in rows: [Row]) -> Int {
        let ids = rows.compactMap { $0[.id] }
        let longest = ids.map(\.count).max() ?? 0
        return (Self.shortestID..<max(Self.shortestID + 1, longest)).first { length in
            Set(ids.map { $0.prefix(length) }).count == ids.count
        } ?? longest
    }

    private func shortenIDs(to width: Int, in rows: inout [Row]) {
        for index in rows.indices { rows[index][.id] = rows[index][.id]?.shortened(to: width, with: "") }
    }

    private func shortenURLs(to width: Int, in rows: inout [Row]) {
        for index in rows.indices { rows[index][.url] = rows[index][.url]?.shortenedURL(to: width) }
    }

    private func width(of column: Column, in rows: [Row]) -> Int {
        rows.map { $0[column]?.count ?? 0 }.max() ?? 0
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        let line = zip(cells, widths).map { $0.padded(to: $1) }.joined(separator: Self.gap)
            .trimmingCharacters(in: .whitespaces)
        return window.map { line.shortened(to: $0) } ?? line
    }

    /// Returns the number of requests per state. The usual states are always listed, the others only if they occur.
    static func summary(_ counts: [String: Int]) -> String {
        let usual: Set<QueuedRequest.State> = [.pending, .inflight, .held, .delivered, .dead]
        return QueuedRequest.State.allCases.compactMap { state in
            let count = counts[state.rawValue] ?? 0
            return count > 0 || usual.contains(state) ? "\(count) \(state)" : nil
        }.joined(separator: ", ")
    }
}

internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// A table of requests for people. It has no borders, and a header only on a terminal.
///
/// On a terminal no row is wider than the window. Elsewhere only URLs are shortened; `queue show` and JSON have them in
/// full.
struct QueueTable {
    private let requests: [ControlMessage.Entry]
    private let window: Int?
    private let now: Date

    /// - Parameter window: The terminal's columns; `nil` without a terminal. Default: the columns of standard output.
    init(
        _ requests: [ControlMessage.Entry],
        window: Int? = Terminal.isAvailable ? Terminal.size.columns : nil,
        now: Date = Date()
    ) {
        self.requests = requests
        self.window = window
        self.now = now
    }

    func print(withHeader: Bool) {
        var rows = requests.map(columns)
        if withHeader, window != nil {
            rows.insert(["ID", "AGE", "STATE", "METHOD", "URL", "TRIES", "WHY"], at: 0)
        }
        let longest = longestURL(in: rows)
        for index in rows.indices { rows[index][Self.url] = rows[index][Self.url].shortened(to: longest) }
        let widths = widths(of: rows)
        for row in rows { Printer.line(line(row, widths: widths)) }
    }

    private func columns(_ entry: ControlMessage.Entry) -> [String] {
        [
            entry.id,
            Self.age(since: entry.created, now: now),
            entry.state,
            entry.method,
            entry.url,
            String(entry.attempts),
            why(entry),
        ]
    }

    private func why(_ entry: ControlMessage.Entry) -> String {
        guard let reason = entry.reason else { return entry.status.map { "HTTP \($0)" } ?? "" }
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

    private static let url = 4
    private static let gap = "  "
    /// The maximum length of a URL if the output is not a terminal.
    private static let defaultURLLength = 100
    /// The minimum width of the URLs on a terminal.
    private static let shortestURL = 20
    /// The minimum width of the reasons on a terminal, if they are long enough.
    private static let leastReason = 40

    /// Returns the maximum length of a URL: the width that the other columns leave.
    private func longestURL(in rows: [[String]]) -> Int {
        guard let window else { return Self.defaultURLLength }
        var widths = widths(of: rows)
        widths[Self.url] = 0
        widths[widths.count - 1] = min(widths[widths.count - 1], Self.leastReason)
        let others = widths.reduce(0, +) + (widths.count - 1) * Self.gap.count
        return max(Self.shortestURL, window - others)
    }

    private func widths(of rows: [[String]]) -> [Int] {
        rows.reduce(into: [Int](repeating: 0, count: 7)) { widths, row in
            for (index, text) in row.enumerated() { widths[index] = max(widths[index], text.count) }
        }
    }

    private func line(_ row: [String], widths: [Int]) -> String {
        let line = zip(row, widths).map { $0.padded(to: $1) }.joined(separator: Self.gap)
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

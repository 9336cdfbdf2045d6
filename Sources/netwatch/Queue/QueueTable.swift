internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// Requests as a table for people: no borders, a header only on a terminal.
struct QueueTable {
    private let requests: [ControlMessage.Entry]
    private let now: Date

    init(_ requests: [ControlMessage.Entry], now: Date = Date()) {
        self.requests = requests
        self.now = now
    }

    func print(withHeader: Bool) {
        var rows = requests.map(columns)
        if withHeader, Terminal.isThere {
            rows.insert(["ID", "AGE", "STATE", "METHOD", "URL", "TRIES", "WHY"], at: 0)
        }
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
        if let reason = entry.reason {
            // A held request waits for somebody, not for its lane.
            let until = entry.state == "pending" ? entry.laneClosedUntil : nil
            return reason + (until.map { " until \($0.rfc3339)" } ?? "")
        }
        return entry.status.map { "HTTP \($0)" } ?? ""
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

    private func widths(of rows: [[String]]) -> [Int] {
        rows.reduce(into: [Int](repeating: 0, count: 7)) { widths, row in
            for (index, text) in row.enumerated() { widths[index] = max(widths[index], text.count) }
        }
    }

    private func line(_ row: [String], widths: [Int]) -> String {
        let padded = zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }
        return padded.joined(separator: "  ").trimmingCharacters(in: .whitespaces)
    }

    /// How many there are in each state; the usual ones also when there are none.
    static func summary(_ counts: [String: Int]) -> String {
        let usual: Set<QueuedRequest.State> = [.pending, .inflight, .held, .delivered, .dead]
        return QueuedRequest.State.allCases.compactMap { state in
            let count = counts[state.rawValue] ?? 0
            return count > 0 || usual.contains(state) ? "\(count) \(state)" : nil
        }.joined(separator: ", ")
    }
}

internal import Foundation
internal import NetwatchService

/// The queue as a table for people: no borders, a header only on a terminal.
struct QueueTable {
    private let list: ControlMessage.List
    private let now: Date

    init(_ list: ControlMessage.List, now: Date = Date()) {
        self.list = list
        self.now = now
    }

    func print() {
        var rows = list.requests.map(columns)
        if isatty(STDOUT_FILENO) == 1 {
            rows.insert(["ID", "AGE", "STATE", "METHOD", "URL", "TRIES", "WHY"], at: 0)
        }
        for row in rows { Printer.data(line(row, widths: widths(of: rows))) }
        Printer.note(summary)
    }

    private func columns(_ entry: ControlMessage.Entry) -> [String] {
        [
            entry.id,
            age(since: entry.created),
            entry.state,
            entry.method,
            entry.url,
            String(entry.attempts),
            why(entry),
        ]
    }

    private func why(_ entry: ControlMessage.Entry) -> String {
        if let reason = entry.holdReason { return "held: \(reason)" }
        if let status = entry.status, entry.lastError == nil { return "HTTP \(status)" }
        return entry.lastError ?? ""
    }

    private func age(since date: Date) -> String {
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

    private var summary: String {
        let order = ["pending", "inflight", "held", "delivered", "dead"]
        return order.map { "\(list.counts[$0] ?? 0) \($0)" }.joined(separator: ", ")
    }
}

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
            [.id: shortened(part.id), .state: part.state, .url: part.host, .reason: "of another user"]
        }
    }

    private func row(_ entry: ControlMessage.Entry, _ shortened: (String) -> String) -> QueueTableLayout.Row {
        [
            .id: shortened(entry.id),
            .age: Self.span(from: entry.created, to: now),
            .size: entry.bodyBytes > 0 ? ByteText.format(entry.bodyBytes) : "",
            .state: entry.state,
            .method: entry.method,
            .url: entry.url,
            .tries: String(entry.attempts),
            .next: next(entry),
            .reason: entry.waitsForRequest.map { "waits for \(shortened($0))" } ?? reason(of: entry),
        ]
    }

    /// Returns when the request is tried next; empty if that is not known.
    private func next(_ entry: ControlMessage.Entry) -> String {
        if entry.state == QueuedRequest.State.inflight.rawValue { return "now" }
        guard let time = WaitText.nextAttempt(of: entry) else { return "" }
        return time > now ? "in \(Self.span(from: now, to: time))" : "now"
    }

    private func reason(of entry: ControlMessage.Entry) -> String {
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
    static func summary(_ counts: [String: Int]) -> String {
        let usual: Set<QueuedRequest.State> = [.pending, .inflight, .held, .delivered, .dead]
        return QueuedRequest.State.allCases.compactMap { state in
            let count = counts[state.rawValue] ?? 0
            return count > 0 || usual.contains(state) ? "\(count) \(state)" : nil
        }.joined(separator: ", ")
    }
}

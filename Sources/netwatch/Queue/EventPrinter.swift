internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// Prints the events of a stream, one line for each.
final class EventPrinter: Sendable {
    private struct State {
        var parser = EventParser()
        var hasBegun = false
        /// The number of events after which the process exits; `nil` for no limit.
        var left: Int?
    }

    private let format: OutputFormat
    private let state: Lock<State>

    init(format: OutputFormat, limit: Int?) {
        self.format = format
        state = Lock(State(left: limit))
    }

    /// Prints the events that are complete. Blocks while the reader of the output is slow; then the service waits, too.
    func print(_ bytes: Data) {
        state.withLock { state in
            let events = state.parser.consume(bytes)
            if !state.hasBegun, state.parser.hasEventStream { Printer.note("waiting for events") }
            state.hasBegun = state.hasBegun || state.parser.hasEventStream
            for event in events { print(event, &state.left) }
        }
    }

    private func print(_ data: Data, _ left: inout Int?) {
        // A newer service may send events of another form.
        let event = try? ControlMessage.decoder.decode(ControlMessage.Event.self, from: data)
        switch format {
        case .json: Printer.json(data)
        case .text: if let event { Printer.line(Self.line(event)) }
        }
        guard let count = left, event?.isChange == true else { return }
        left = count - 1
        if count == 1 { exit(ExitStatus.yes.rawValue) }
    }

    /// Returns an event as text: `14:03:49.202  postponed  order-7  api.example.com  until 14:05:00.000: HTTP 503`.
    static func line(_ event: ControlMessage.Event) -> String {
        let subject = event.request ?? (event.host == nil ? "queue" : "lane")
        // Several users may have a lane with this label. `queue show` prints the submitter of a request.
        let owner = event.request == nil ? event.submitter.map { "of user \($0)" } : nil
        let lane = [event.host, event.lane, owner].compactMap(\.self).joined(separator: " ")
        return [LocalTime.format(event.time), event.event, subject, lane, details(of: event)]
            .filter { !$0.isEmpty }.joined(separator: "  ")
    }

    private static func details(of event: ControlMessage.Event) -> String {
        if let lost = event.lost { return "\(lost) events" }
        let due = event.due.map {
            "\(event.host != nil && event.request == nil ? "until" : "due") \($0.rfc3339)"
        }
        let parts = [event.holdReason, due, outcome(of: event)]
        return parts.compactMap(\.self).joined(separator: ": ")
    }

    private static func outcome(of event: ControlMessage.Event) -> String? {
        let last = event.reason ?? event.status.map { "HTTP \($0)" }
        return switch event.event {
        // When an attempt starts, the status and the error are those of the previous one.
        case "started": nil
        // The last error is not the cause of these ends.
        case "cancelled", "superseded": last.map { "last error: \($0)" }
        default: last
        }
    }
}

extension ControlMessage.Event {
    /// Whether the event is a change of the queue, and not a message about the stream itself.
    fileprivate var isChange: Bool { !["lost", "reset"].contains(event) }
}

/// Parses a stream of server-sent events (WHATWG HTML §9.2) into the `data` of each event.
struct EventParser {
    private var line = Data()
    private var data = Data()
    /// Whether a complete block of lines has arrived. The body of an error response has none.
    private(set) var hasEventStream = false

    /// Adds bytes to the stream, and returns the data of the events that they complete.
    mutating func consume(_ bytes: Data) -> [Data] {
        var events: [Data] = []
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                continue
            }
            if let event = endLine() { events.append(event) }
        }
        return events
    }

    private mutating func endLine() -> Data? {
        defer { line = Data() }
        guard !line.isEmpty else {
            defer { data = Data() }
            hasEventStream = true
            return data.isEmpty ? nil : data
        }
        let prefix = Data("data: ".utf8)
        if line.starts(with: prefix) { data += line.dropFirst(prefix.count) }
        return nil
    }
}

internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// The `netwatch queue events` command.
struct QueueEventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Print the changes of the queue as they happen.",
        discussion: """
            netwatch queue events
            netwatch queue events --state dead,held --format json
            netwatch queue events -n 1 --state delivered --host api.example.com

            Prints one line for each change of a request, a lane or the whole queue, until a signal ends the \
            command. From the message `waiting for events` on, no change is missed. `--state` selects changes \
            after which the request is in one of the states. `--tag` selects changes of requests with the tag. The \
            command needs the running service.

            `lost` reports how many events were dropped because this command read too slowly. `reset` \
            means that the service does not know the event of `--after` any more. In both cases \
            `netwatch queue list` prints the current states.

            Exit status: 0 after the events of -n; 2 if the service ended the stream, for example because it \
            stopped; 69 service not running. Otherwise the command runs until a signal ends it.
            """
    )

    /// The longest time without any data from the service, which sends a heartbeat every 15 s.
    private static let silence: Duration = .seconds(60)

    @OptionGroup var states: StateFilter
    @OptionGroup var filter: LaneFilter
    @OptionGroup var tags: TagFilter
    @OptionGroup var queue: QueueOptions

    @Option(
        name: [.customShort("n"), .long],
        help:
            "Exit with status 0 after this number of events; `lost` and `reset` do not count. Default: no limit."
    )
    var limit: Int?

    @Option(
        help:
            "Continue after the event with this id (`id` in the JSON output). Default: only new events."
    )
    var after: String?

    @Option(name: .shortAndLong, help: "The output format: text, or json for one object per line.")
    var format = OutputFormat.text

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("`-n` is \(limit); it must be at least 1") }
        if after == "" { throw ValidationError("`--after` must not be empty") }
    }

    mutating func run() async throws {
        Printer.exitWhenReaderExits()
        let (target, printer) = (target, EventPrinter(format: format, limit: limit))
        try await queue.withRunningService { client in
            try await client.stream(target, silence: Self.silence) { printer.print($0) }
        }
    }

    private var target: String {
        let states = states.wanted.map { "state=\($0.rawValue)" }
        let query = states + filter.parameters([("tag", tags.tag), ("after", after)])
        return "/v1/events" + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }
}

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

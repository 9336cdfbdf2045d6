internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The queueing options of a request.
struct DeliveryOptions: ParsableArguments {
    /// Whether to use the queue.
    enum QueueChoice: String, ExpressibleByArgument, CaseIterable {
        /// Stores the request, tries it once and reports the result.
        case auto
        /// Stores the request immediately, and tries it afterwards.
        case always
        /// Tries once, and neither stores nor retries the request.
        case never
    }

    @Option(
        name: .customLong("queue"),
        help:
            "auto: store, try once and report the result; always: store and return; never: try once, without the service."
    )
    var choice = QueueChoice.auto

    @Option(help: "The label of a separate lane for requests to the same server.")
    var lane: String?

    @Flag(help: "Send the requests of the lane one at a time, in the order in which they were accepted.")
    var fifo = false

    @Option(
        help: "How long to keep trying, like 1h or 30d, at most 366d. Default 7d.",
        transform: Duration.argument
    )
    var ttl: Duration?

    @Option(
        help: "The earliest time of the first attempt: 2026-01-31T12:34:56Z, or a duration from now.",
        transform: StartTime.argument
    )
    var at: Date?

    @Option(help: "The priority within the lane: 0 is sent before 9. Default 5.")
    var priority: Int?

    @Option(help: "Replace a waiting request of the same lane that has the same key.")
    var replaceKey: String?

    @Option(
        help:
            "The id of a request that must be delivered first, or at least its first 8 characters. Repeatable."
    )
    var after: [String] = []

    @Flag(help: "Never send the request twice, even if it then may not be delivered.")
    var atMostOnce = false

    @Option(
        help: "The id of the request; a request with a known id is not accepted again. Default: generated."
    )
    var id: String?

    func validate() throws {
        // `netwatch queue hold -` reads ids from standard input, so `-` cannot be an id.
        if let id, ["", "-"].contains(id) {
            throw ValidationError("`--id '\(id)'`: the id must not be empty or `-`")
        }
        guard choice == .never else { return }
        let given: [(String, Bool)] = [
            ("--lane", lane != nil), ("--fifo", fifo), ("--ttl", ttl != nil), ("--at", at != nil),
            ("--priority", priority != nil), ("--replace-key", replaceKey != nil),
            ("--after", !after.isEmpty),
            ("--id", id != nil),
        ]
        guard let name = given.first(where: \.1)?.0 else { return }
        throw ValidationError("`--queue never` cannot be combined with `\(name)`")
    }

    func apply(to message: inout ControlMessage.Send) {
        let mode: ControlMessage.QueueMode = choice == .always ? .always : .auto
        message.queue = mode.rawValue
        message.lane = lane
        message.fifo = fifo
        message.ttlSeconds = ttl?.seconds
        message.notBefore = at
        message.priority = priority
        message.replaceKey = replaceKey
        message.atMostOnce = atMostOnce
        // Chosen by the client, so that the id is known even if the response is lost.
        message.id = id ?? UUIDv7.make()
    }
}

/// Parses a future time.
enum StartTime {
    static func argument(_ text: String) throws -> Date {
        if let duration = DurationText.parse(text) { return Date(timeIntervalSinceNow: duration.seconds) }
        guard let date = Date(rfc3339: text) else {
            throw ValidationError(
                "`\(text)` is neither a time like `2026-01-31T12:34:56Z` nor \(DurationText.acceptedForms)"
            )
        }
        return date
    }
}

internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The queueing options of a request.
struct DeliveryOptions: ParsableArguments {
    /// Whether to use the queue.
    enum QueueChoice: String, ExpressibleByArgument, CaseIterable {
        /// Tries immediately, and stores the request if that fails.
        case auto
        /// Stores the request immediately, and tries it afterwards.
        case always
        /// Tries once, and neither stores nor retries the request.
        case never
    }

    @Option(
        name: .customLong("queue"),
        help:
            "auto tries at once and keeps what fails; always keeps first; never needs no service and keeps nothing."
    )
    var choice = QueueChoice.auto

    @Option(help: "Set apart from other requests to the same server.")
    var lane: String?

    @Flag(help: "Keep the order: requests to the same server go out one by one, as they came.")
    var fifo = false

    @Option(
        help: "How long it is tried, as 1h or 30d, at most 366d. Default 7d.",
        transform: Duration.argument
    )
    var ttl: Duration?

    @Option(
        help: "Not before this time: 2026-01-31T12:34:56Z, or a duration from now.",
        transform: StartTime.argument
    )
    var at: Date?

    @Option(help: "Which of a lane go first, 0 before 9. Default 5.")
    var priority: Int?

    @Option(help: "Takes the place of a waiting request of the same lane with the same key.")
    var replaceKey: String?

    @Option(
        help:
            "The id of a request that has to be delivered before, or its first 8 or more characters. Repeatable."
    )
    var after: [String] = []

    @Flag(help: "Rather not deliver it than send it twice.")
    var atMostOnce = false

    @Option(help: "An id of your own; sending it again changes nothing. Default: one is made.")
    var id: String?

    func validate() throws {
        // `netwatch queue hold -` reads ids from standard input, so `-` cannot be an id.
        if let id, ["", "-"].contains(id) {
            throw ValidationError("`--id '\(id)'`: an id is neither empty nor `-`")
        }
        guard choice == .never else { return }
        let given: [(String, Bool)] = [
            ("--lane", lane != nil), ("--fifo", fifo), ("--ttl", ttl != nil), ("--at", at != nil),
            ("--priority", priority != nil), ("--replace-key", replaceKey != nil),
            ("--after", !after.isEmpty),
            ("--id", id != nil),
        ]
        guard let name = given.first(where: \.1)?.0 else { return }
        throw ValidationError("`--queue never` keeps nothing, which excludes `\(name)`")
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

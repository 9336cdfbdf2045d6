internal import ArgumentParser
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

internal import ArgumentParser
internal import NetwatchService

/// The `netwatch queue flush` command.
struct QueueFlushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flush",
        abstract: "Try all waiting requests now.",
        discussion: """
            netwatch queue flush

            Ends all delays between attempts once, for every server. Frequent flushes slow down delivery. This \
            needs the service, which sends the requests.
            """
    )

    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        let flushed = try await queue.withQueue {
            try await $0.post("/v1/queue/flush", as: ControlMessage.Flushed.self)
        }
        Printer.note("trying \(CountText.format(flushed.requests, "request"))")
    }
}

/// The `netwatch queue pause` command.
struct QueuePauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Start no more attempts until the queue is resumed, even after a restart.",
        discussion: """
            netwatch queue pause
            netwatch queue pause --host api.example.com --lane reports

            Requests in flight are finished, and new requests are accepted. Without --host and --lane, the whole \
            queue is paused.

            Exit status: 0 paused, 1 no lane matches and nothing was changed.
            """
    )

    @OptionGroup var lanes: PauseOptions

    mutating func run() async throws {
        try await lanes.set("pause")
    }
}

/// The `netwatch queue resume` command.
struct QueueResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "End all pauses, or the pause of some lanes.",
        discussion: """
            netwatch queue resume
            netwatch queue resume --host api.example.com --lane reports

            While the whole queue is paused, all lanes wait, even those that are resumed. `netwatch queue stats` \
            lists what is paused.

            Exit status: 0 resumed, 1 no lane matches and nothing was changed.
            """
    )

    @OptionGroup var lanes: PauseOptions

    mutating func run() async throws {
        try await lanes.set("resume")
    }
}

/// Options that select the lanes to pause.
struct PauseOptions: ParsableArguments {
    @Option(help: "Only lanes to this host.")
    var host: String?

    @Option(help: "Only lanes with this label; empty for lanes without a label.")
    var lane: String?

    @OptionGroup var queue: QueueOptions

    func set(_ action: String) async throws {
        let lanes = ControlMessage.Lanes(host: host, lane: lane)
        let done = try await queue.withQueue {
            try await $0.post("/v1/queue/\(action)", lanes, as: ControlMessage.Paused.self)
        }
        let what =
            host == nil && lane == nil ? "the queue" : CountText.format(done.lanes, "lane")
        Printer.note("\(done.paused ? "paused" : "resumed") \(what)")
    }
}

/// The `netwatch queue stats` command.
struct QueueStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show statistics of the queue.",
        discussion: """
            netwatch queue stats
            netwatch queue stats --format json
            """
    )

    @Option(name: .shortAndLong, help: "The output format: text, or json for one object.")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        let statistics = try await queue.withQueue {
            try await $0.get("/v1/queue/stats", as: ControlMessage.Statistics.self)
        }
        switch format {
        case .json: Printer.json(statistics, with: ControlMessage.encoder)
        case .text: for line in StatisticsReport(statistics).lines { Printer.line(line) }
        }
    }
}

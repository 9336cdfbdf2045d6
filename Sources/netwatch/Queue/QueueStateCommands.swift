internal import ArgumentParser
internal import NetwatchService

/// The `netwatch queue flush` command.
struct QueueFlushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flush",
        abstract: "Try all waiting requests now, or those of some lanes.",
        discussion: """
            netwatch queue flush
            netwatch queue flush --host api.example.com

            Ends the current delays between attempts to all servers, and also tries requests whose host seems \
            unreachable. A request still waits if it is paused or scheduled for later, or if a constraint or a \
            rate limit delays it.

            A flush also ends the pauses that servers have asked for with Retry-After, and the pauses after failures. \
            An overloaded server then needs longer to recover, so frequent flushes slow down delivery.

            The command needs the running service. It prints how many requests are pending or in flight, and how \
            many lanes it has opened against the Retry-After of a server.

            Exit status: 0 done; 1 no lane matches, and nothing was changed; 69 service not running.
            """
    )

    @OptionGroup var lanes: LaneOptions

    mutating func run() async throws {
        let selection = lanes.selection
        let (before, flushed) = try await lanes.queue.withRunningService { client in
            let before = try await client.get("/v1/queue/stats", as: ControlMessage.Statistics.self)
            let flushed = try await client.post("/v1/queue/flush", selection, as: ControlMessage.Flushed.self)
            return (before, flushed)
        }
        let delays = lanes.isWhole ? "all delays" : "the delays of the lanes \(lanes.selectionText)"
        let count = CountText.format(flushed.requests, "request")
        Printer.note("ended \(delays): \(count) pending or in flight\(lanes.pauseText(before))")
        if let warning = warning(before) { Printer.warning(warning) }
    }

    /// Returns the warning about lanes that servers had closed; `nil` if the flush opened none of them.
    ///
    /// - Parameter before: The statistics before the flush.
    private func warning(_ before: ControlMessage.Statistics) -> String? {
        let opened = before.closedLanes.filter { lane in
            lane.status != nil && lanes.contain(host: lane.host, label: lane.lane)
        }
        guard !opened.isEmpty else { return nil }
        let hosts = Set(opened.map(\.host)).sorted()
        let names = hosts.prefix(3).joined(separator: ", ") + (hosts.count > 3 ? ", …" : "")
        let count = CountText.format(opened.count, "lane")
        return Printer.printable("opened \(count) before the end of a server's Retry-After: \(names)")
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

            Requests in flight are finished, and new requests are still accepted. Without --host and --lane, \
            the whole queue is paused.

            Exit status: 0 paused; 1 no lane matches, and nothing was changed.
            """
    )

    @OptionGroup var lanes: LaneOptions

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

            Without --host and --lane, all pauses end. While the whole queue is paused, all lanes wait, even \
            those that you resume individually. `netwatch queue stats` lists what is paused.

            Exit status: 0 resumed, or not paused; 1 no lane matches, and nothing was changed.
            """
    )

    @OptionGroup var lanes: LaneOptions

    mutating func run() async throws {
        try await lanes.set("resume")
    }
}

/// Options that select lanes; without any, the whole queue.
struct LaneOptions: ParsableArguments {
    @Option(help: "Only lanes to this host.", transform: HostName.argument)
    var host: String?

    @Option(help: "Only lanes with this label; empty for lanes without a label.")
    var lane: String?

    @OptionGroup var queue: QueueOptions

    var selection: ControlMessage.Lanes { ControlMessage.Lanes(host: host, lane: lane) }

    var isWhole: Bool { host == nil && lane == nil }

    /// The given options in words: `to HOST with the label LABEL`.
    var selectionText: String {
        let label = lane.map { $0.isEmpty ? "without a label" : "with the label \(Printer.quoted($0))" }
        return [host.map { "to \(Printer.quoted($0))" }, label].compactMap(\.self).joined(separator: " ")
    }

    /// Says which of the selected lanes are paused; empty if none are.
    func pauseText(_ statistics: ControlMessage.Statistics) -> String {
        if statistics.paused {
            return "; the whole queue is still paused: `netwatch queue resume` ends that"
        }
        let count = statistics.pausedLanes.count { contain(host: $0.host, label: $0.lane) }
        return count > 0 ? "; \(CountText.format(count, "lane")) still paused" : ""
    }

    /// Whether the options select a lane with this host and label.
    ///
    /// - Parameters:
    ///   - host: A host as the service lists it, in lower case.
    ///   - label: The lane's label, in the form of the service.
    func contain(host: String?, label: String?) -> Bool {
        host == self.host?.lowercased() ?? host && label == lane ?? label
    }

    func set(_ action: String) async throws {
        let selection = selection
        let (before, done) = try await queue.withQueue { client in
            let before = try await client.get("/v1/queue/stats", as: ControlMessage.Statistics.self)
            let path = "/v1/queue/\(action)"
            return (before, try await client.post(path, selection, as: ControlMessage.Paused.self))
        }
        Printer.note(summary(done, before))
    }

    /// Returns what was done in words.
    ///
    /// - Parameter before: The statistics before the change.
    private func summary(_ done: ControlMessage.Paused, _ before: ControlMessage.Statistics) -> String {
        let lanes = CountText.format(done.lanes, "lane")
        let what = isWhole ? "the queue: \(lanes) with requests" : lanes
        if done.paused { return "paused \(what)" }
        let wasPaused =
            before.pausedLanes.contains { contain(host: $0.host, label: $0.lane) }
            || (isWhole && before.paused)
        let remaining = !isWhole && before.paused ? pauseText(before) : ""
        return (wasPaused ? "resumed \(what)" : "nothing was paused") + remaining
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

            Exit status: 0 if the statistics were printed.
            """
    )

    @Option(name: .shortAndLong, help: "The output format: text, or json (a single JSON object).")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        let statistics = try await queue.withQueue {
            try await $0.get("/v1/queue/stats", as: ControlMessage.Statistics.self)
        }
        switch format {
        case .json: Printer.json(statistics, with: ControlMessage.encoder)
        case .text: Printer.rows(StatisticsReport(statistics).lines, indent: StatisticsReport.indent)
        }
    }
}

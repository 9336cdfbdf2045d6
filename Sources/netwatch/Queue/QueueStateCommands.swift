internal import ArgumentParser
internal import NetwatchService
internal import OfflineQueue

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
            rate limit delays it. The number of retries to an origin is limited: each lane sends one as soon as it has a \
            slot, and the others follow as the limit permits. `netwatch queue list` shows what each request waits for.

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
        let flushed = try await lanes.queue.withRunningService { client in
            try await client.post("/v1/queue/flush", selection, as: ControlMessage.Flushed.self)
        }
        let flushedLanes = lanes.isWhole ? "all lanes" : "the lanes \(lanes.selectionText)"
        let count = CountText.format(flushed.requests, "request")
        Printer.note("flushed \(flushedLanes): \(count) pending or in flight\(Self.pauseText(flushed))")
        if let warning = Self.warning(flushed.openedLanes) { Printer.warning(warning) }
    }

    /// Says what is still paused; empty if nothing is.
    private static func pauseText(_ flushed: ControlMessage.Flushed) -> String {
        if flushed.queuePaused { return LaneOptions.queueIsPaused }
        let count = flushed.pausedLanes.count
        return count > 0 ? "; \(CountText.format(count, "lane")) still paused" : ""
    }

    /// Returns the warning about lanes that servers had closed; `nil` if the flush opened none of them.
    private static func warning(_ opened: [QueueStatistics.ClosedLane]) -> String? {
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

            Requests in flight are finished, and new requests are still accepted. Without --host, --lane and \
            --submitter, the whole queue is paused. Each user has separate lanes. Without --submitter, the pause also \
            applies to the same lanes of users who submit requests later.

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

            Without --host, --lane and --submitter, all pauses end. While the whole queue is paused, all lanes \
            wait, even those that you resume individually. `netwatch queue stats` lists what is paused.

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

    @Option(help: "Only lanes of this user: a name or an id.", transform: UserName.argument)
    var submitter: UInt32?

    @OptionGroup var queue: QueueOptions

    var selection: LaneSelection { LaneSelection(host: host, label: lane, submitter: submitter) }

    var isWhole: Bool { host == nil && lane == nil && submitter == nil }

    /// The given options in words: `to HOST with the label LABEL of the user ID`.
    var selectionText: String {
        let label = lane.map { $0.isEmpty ? "without a label" : "with the label \(Printer.quoted($0))" }
        let owner = submitter.map { "of the user \($0)" }
        return [host.map { "to \(Printer.quoted($0))" }, label, owner].compactMap(\.self)
            .joined(separator: " ")
    }

    /// Says that a pause of the whole queue goes on, as the end of a sentence.
    static let queueIsPaused = "; the whole queue is still paused: `netwatch queue resume` ends that"

    func set(_ action: String) async throws {
        let selection = selection
        let done = try await queue.withQueue { client in
            try await client.post("/v1/queue/\(action)", selection, as: ControlMessage.Paused.self)
        }
        Printer.note(summary(done))
    }

    /// Returns what was done in words.
    private func summary(_ done: ControlMessage.Paused) -> String {
        let lanes = CountText.format(done.lanes, "lane")
        let what = isWhole ? "the queue: \(lanes) with requests" : lanes
        if done.paused { return "paused \(what)" }
        let change = done.wasPaused == false ? "nothing was paused" : "resumed \(what)"
        return change + (done.queuePaused == true ? Self.queueIsPaused : "")
    }
}

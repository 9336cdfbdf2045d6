internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

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
            try await $0.get("/v1/queue/stats", as: QueueStatistics.self)
        }
        switch format {
        case .json: Printer.json(ControlMessage.Versioned(statistics), with: ControlMessage.encoder)
        case .text:
            let report = StatisticsReport(statistics, showsCompletions: queue.mayHaveHandlers)
            Printer.rows(report.lines, indent: StatisticsReport.indent)
        }
    }
}

/// The statistics of the queue for people.
struct StatisticsReport {
    let statistics: QueueStatistics
    private let showsCompletions: Bool
    private let now: Date

    /// - Parameter showsCompletions: Whether the rows include the finished requests that wait for completion handlers.
    ///   Default: no.
    init(_ statistics: QueueStatistics, showsCompletions: Bool = false, now: Date = Date()) {
        self.statistics = statistics
        self.showsCompletions = showsCompletions
        self.now = now
    }

    var lines: [String] {
        let oldest = statistics.oldest.map {
            [("oldest", DurationText.format(.seconds(now.timeIntervalSince($0))))]
        }
        let rows =
            [
                ("requests", QueueTable.summary(statistics.counts)),
                (
                    "waiting",
                    "\(CountText.format(statistics.requests, "request")), \(ByteText.format(statistics.bytes))"
                ),
            ] + (oldest ?? []) + [
                ("lanes", "\(statistics.lanes)")
            ] + uploads + pauses + closures + completions + encryption + [
                ("database", ByteText.format(statistics.databaseBytes)),
                ("free disk", freeDisk),
            ]
        return rows.map { $0.0.padded(to: Self.indent - 2) + "  " + $0.1 }
    }

    /// The column in which the texts begin.
    static let indent = 12

    private var freeDisk: String {
        let free = ByteText.format(statistics.freeBytes)
        guard statistics.isDiskFull else { return free }
        let reserve = ByteText.format(statistics.diskReserve)
        return
            "\(free), of \(reserve) that must stay free: new requests are refused, large ones first"
    }

    /// The row of uploads that no request uses yet. There is no row without such uploads.
    private var uploads: [(String, String)] {
        guard statistics.stagedBodies > 0 else { return [] }
        let bytes = ByteText.format(statistics.stagedBytes)
        return [("staged", "\(CountText.format(statistics.stagedBodies, "upload")), \(bytes)")]
    }

    /// One row per tag with finished requests that no program's handler has received; the first row has the title.
    /// Without such requests there is no row.
    private var completions: [(String, String)] {
        guard showsCompletions else { return [] }
        return statistics.completions.enumerated().map { index, completion in
            let count = CountText.format(completion.count, "request")
            let verb = completion.count == 1 ? "waits" : "wait"
            return (
                index == 0 ? "finished" : "",
                "\(count) with the tag \(completion.tag) \(verb) for a program that uses the library"
            )
        }
    }

    /// One row per pause; the first row has the title. Without pauses there is one row.
    private var pauses: [(String, String)] {
        let queue = statistics.isPaused ? ["the whole queue"] : []
        let names = queue + statistics.pausedLanes.map { Self.summary($0.host, $0.label, $0.submitter) }
        return (names.isEmpty ? ["no"] : names).enumerated().map { ($0 == 0 ? "paused" : "", $1) }
    }

    /// One row per closed lane; the first row has the title. Without closed lanes there is no row.
    private var closures: [(String, String)] {
        statistics.closedLanes.enumerated().map { index, lane in
            let name = Self.summary(lane.origin, lane.label, lane.submitter)
            let constraints = lane.constraints.isEmpty ? nil : "\(lane.constraints)"
            let rest = [lane.isFIFO ? "in order" : nil, constraints].compactMap(\.self)
            let full = ([name] + rest).joined(separator: ", ")
            return (
                index == 0 ? "closed" : "", "\(full): until \(lane.closure.until.rfc3339), \(lane.closure)"
            )
        }
    }

    /// One row per encryption key; the first row has the title. Without encryption there is no row.
    private var encryption: [(String, String)] {
        statistics.encryption.enumerated().map { index, use in
            let key = use.keyID.map { "key \($0)" } ?? "not encrypted"
            let note = use.isCurrent ? " (current)" : use.isAvailable ? "" : " (missing)"
            let count = CountText.format(use.requests, "request", plural: "requests")
            return (index == 0 ? "encryption" : "", "\(key)\(note): \(count)")
        }
    }

    private static func summary(_ host: String, _ label: String, _ submitter: UInt32?) -> String {
        let owner = submitter.map { ", user \($0)" } ?? ""
        return "\(host), \(label.isEmpty ? "no label" : "lane \(label)")\(owner)"
    }
}

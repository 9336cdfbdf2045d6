internal import Foundation
internal import NetwatchService

/// The queue's statistics as text.
struct StatisticsReport {
    let statistics: ControlMessage.Statistics
    private let now: Date

    init(_ statistics: ControlMessage.Statistics, now: Date = Date()) {
        self.statistics = statistics
        self.now = now
    }

    var lines: [String] {
        let oldest = statistics.oldest.map {
            [("oldest", DurationText.format(.seconds(now.timeIntervalSince($0))))]
        }
        let rows =
            [
                ("requests", QueueTable.summary(statistics.counts)),
                ("waiting", "\(statistics.requests), \(ByteText.format(statistics.bytes))"),
            ] + (oldest ?? []) + [
                ("lanes", "\(statistics.lanes)")
            ] + uploads + pauses + closures + [
                ("database", ByteText.format(statistics.databaseBytes)),
                ("free disk", ByteText.format(statistics.freeBytes)),
            ]
        return rows.map { $0.0.padded(to: 10) + "  " + $0.1 }
    }

    /// Uploads that no request uses yet. No row if there are none.
    private var uploads: [(String, String)] {
        guard let count = statistics.stagedBodies, count > 0 else { return [] }
        let bytes = ByteText.format(statistics.stagedBytes ?? 0)
        return [("staged", "\(CountText.format(count, "body", plural: "bodies")), \(bytes)")]
    }

    /// One row per pause. Only the first row has the name.
    private var pauses: [(String, String)] {
        let queue = statistics.paused ? ["the whole queue"] : []
        let names = queue + statistics.pausedLanes.map(Self.summary)
        return (names.isEmpty ? ["no"] : names).enumerated().map { ($0 == 0 ? "paused" : "", $1) }
    }

    /// One row per closed lane; no row if there are none.
    private var closures: [(String, String)] {
        statistics.closedLanes.enumerated().map { index, lane in
            let name = Self.summary(ControlMessage.Lanes(host: lane.host, lane: lane.lane))
            return (index == 0 ? "closed" : "", "\(name) until \(lane.until.rfc3339): \(lane.reason)")
        }
    }

    private static func summary(_ lanes: ControlMessage.Lanes) -> String {
        let label = lanes.lane ?? ""
        return "\(lanes.host ?? ""), \(label.isEmpty ? "no label" : "lane \(label)")"
    }
}

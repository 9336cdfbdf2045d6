internal import Foundation
internal import Testing

@testable internal import NetwatchService
@testable internal import netwatch

/// The output of `netwatch history` in windows of several widths.
@Suite struct HistoryReportTests {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)

    /// - Parameter latency: Returns the median latency of a step, in seconds, by the number of the step.
    private func lines(
        window: Int?,
        outage: ControlMessage.History.Outage? = nil,
        now: Date = start,
        latency: (Int) -> Double? = { _ in nil }
    ) -> [String] {
        let host = ControlMessage.Host(
            name: "collector",
            check: "https://api.example.com/healthz",
            state: "down",
            cause: "remote",
            uptime: ControlMessage.Uptime(),
            intervalSeconds: 30,
            timeoutSeconds: 5,
            fall: 3,
            rise: 2
        )
        let steps = (0..<96).map { number in
            ControlMessage.History.Step(
                start: Self.start + Double(number) * 900,
                upSeconds: number < 48 ? 900 : 0,
                remoteSeconds: number < 48 ? 0 : 900,
                localSeconds: 0,
                probes: 30,
                failures: 0,
                p50Seconds: latency(number)
            )
        }
        let past = ControlMessage.History.Outage(
            cause: "remote",
            start: Self.start,
            end: Self.start + 60,
            reason: "timed out after 5 s while connecting"
        )
        let history = ControlMessage.History(
            name: "collector",
            window: "24h",
            uptime: 0.5,
            p50Seconds: 0.0124,
            p95Seconds: 0.0401,
            steps: steps,
            outages: [outage ?? past]
        )
        return HistoryReport(host, history, window: window, now: now).lines.map(\.plain)
    }

    @Test func `without a terminal each text has one line`() {
        let lines = lines(window: nil)
        #expect(lines.count == 4)
        #expect(lines[0].hasPrefix("collector  down (remote), 50.00 % up in 24h, p50 12.4 ms"), "\(lines)")
        #expect(lines[1] == "  " + String(repeating: "█", count: 24) + String(repeating: "x", count: 24))
    }

    @Test func `the duration of an outage that has not ended is the time so far`() {
        let outage = ControlMessage.History.Outage(cause: "local", start: Self.start, reason: "no carrier")
        let lines = lines(window: nil, outage: outage, now: Self.start + 5.1)
        #expect(lines.last == "  2027-01-15T08:00Z  own link down for 5.1 s so far: no carrier")
    }

    @Test func `the heights of the latencies are logarithmic, and steps without a latency are blank`() {
        let lines = lines(window: nil) { number in
            switch number {
            case ..<32: 0.001
            case ..<64: nil
            // A symbol stands for two steps, and shows the larger latency of them.
            case ..<80: number.isMultiple(of: 2) ? 0.001 : 0.01
            default: 1
            }
        }
        let parts = [("▁", 16), (" ", 16), ("▃", 8), ("█", 8)]
        #expect(lines[2] == "  " + parts.map { String(repeating: $0, count: $1) }.joined(), "\(lines)")
    }

    @Test func `equal latencies have the lowest height`() {
        let lines = lines(window: nil) { $0 < 48 ? 0.02 : nil }
        #expect(lines[2] == "  " + String(repeating: "▁", count: 24) + String(repeating: " ", count: 24))
    }

    @Test(arguments: [35, 40, 50, 80]) func `no line is wider than the window`(window: Int) {
        let lines = lines(window: window)
        #expect(lines.allSatisfy { $0.count <= max(window, 42) }, "\(lines)")
        #expect(lines.filter { !$0.contains("https") }.allSatisfy { $0.count <= window }, "\(lines)")
        let states = lines.first { $0.hasSuffix("xx") } ?? ""
        #expect(states.count(where: { $0 == "█" }) == states.count(where: { $0 == "x" }), "\(lines)")
        let words = lines.joined(separator: " ").split(separator: " ")
        #expect(words.suffix(7) == ["timed", "out", "after", "5", "s", "while", "connecting"])
    }
}

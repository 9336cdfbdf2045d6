internal import Foundation
internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability
@testable internal import netwatch

@Suite struct LiveTableTests {
    private func records(_ count: Int) -> [HostRecord] {
        (0..<count).map { HostRecord(.host(NetworkHost("host\($0).example")!)) }
    }

    private func lines(_ count: Int, columns: Int = 80, rows: Int = 24) -> [String] {
        LiveTable.lines(records(count), now: .now, columns: columns, rows: rows).map(\.plain)
    }

    @Test func `no line is as wide as the window, and one row stays free`() {
        for columns in [1, 2, 10, 80] {
            for rows in [1, 2, 5, 24] {
                let lines = lines(30, columns: columns, rows: rows)
                #expect(lines.allSatisfy { $0.count <= max(1, columns - 1) })
                #expect(lines.count <= max(1, rows - 1))
            }
        }
    }

    @Test(arguments: [15, 20, 35, 50, 80]) func `the state is cut last`(columns: Int) {
        let target = PathTarget.host(NetworkHost("a-long-name-of-a-host.internal.example.com")!)
        let verdict = TargetVerdict(.notReachable(.noRoute))
        let status = PathStatus(target: target, verdict: verdict, pathGeneration: 1)
        var record = HostRecord(target)
        _ = record.take(ValidatedStatus(status: status, probe: nil), now: .now, time: Date())
        let lines = LiveTable.lines([record], now: .now, columns: columns, rows: 24).map(\.plain)
        #expect(lines.count == 2 && lines[1].contains("not reachable"), "\(lines)")
        #expect(lines[1].count < columns && lines[1].hasPrefix("a-") == (columns > 15), "\(lines)")
        #expect(lines[0].contains("STATE") && lines[0].hasPrefix("H") == (columns > 15), "\(lines)")
        #expect(lines[1].hasSuffix("…") == (columns < 80), "\(lines)")
    }

    @Test func `hosts that do not fit are counted`() {
        #expect(lines(22).count == 23)
        #expect(lines(23).last == "… and 2 more" && lines(23).count == 23)
    }

    @Test func `the table is redrawn in place`() {
        var table = LiveTable()
        let first = table.drawing(records(3), now: .now, columns: 80, rows: 24, hasColors: false)
        let second = table.drawing(records(3), now: .now, columns: 80, rows: 24, hasColors: false)
        #expect(!first.contains("\u{1B}[4A"))
        #expect(second.hasPrefix(Terminal.hideCursor + "\r\u{1B}[4A" + Terminal.clearToEnd + "HOST "))
    }
}

@Suite struct InboxTests {
    @Test func `the inbox keeps the newest value per source, in order of arrival`() {
        let inbox = Inbox<String>()
        for (value, source) in [("a", 7), ("b", 3), ("c", 7)] { inbox.put(value, from: source) }
        let taken = inbox.take()
        #expect(taken.map(\.source) == [7, 3] && taken.map(\.value) == ["c", "b"])
        #expect(inbox.take().isEmpty)
    }

    @Test func `characters that are not printable are escaped for the terminal`() {
        #expect(Printer.printable("eth\u{1B}[2J0\n") == #"eth\u{1B}[2J0\n"#)
        #expect(Printer.printable("bücher ✓ \u{202E}\u{f7ff}") == #"bücher ✓ \u{202E}\xff"#)
        #expect(Printer.quoted(String(repeating: "a", count: 81)).hasSuffix("a…`"))
    }
}

internal import Foundation
internal import NetwatchService
internal import Testing

@testable internal import netwatch

/// How `netwatch queue list` fits its columns into a window.
@Suite struct QueueTableTests {
    private let ids = ["01a1fd77-5b52-70f7-a8f1-b9fb1907155b", "01a1fd77-5b60-7a01-b1de-5cf1f09a3e11"]

    private func table(window: Int?, reason: String) throws -> QueueTable {
        let entries = try ids.map { id in
            let text = """
                {"v":1,"id":"\(id)","state":"pending","method":"POST","url":"https://api.example.com/orders/2026/11/26",
                "fifo":false,"priority":5,"body_bytes":0,"attempts":4,"deferrals":0,"created":"2027-01-15T08:00:00Z",
                "reason":"\(reason)"}
                """
            return ControlMessage.Listed.whole(
                try ControlMessage.decoder.decode(ControlMessage.Entry.self, from: Data(text.utf8))
            )
        }
        return QueueTable(entries, window: window)
    }

    @Test(arguments: [80, 90, 100, 120]) func `the reason is visible in every row`(window: Int) throws {
        let lines = try table(window: window, reason: "waiting after failures until 2027-01-15T08:05:00Z")
            .lines(
                withHeader: true
            )
        #expect(lines[0].contains("  REASON"))
        for line in lines.dropFirst() {
            #expect(line.contains("  waiting after failures") && line.count <= window, "\(line)")
        }
    }

    @Test func `shortened ids differ, and are accepted as beginnings of ids`() throws {
        let lines = try table(window: 80, reason: "no route to host, and more words").lines(withHeader: false)
        #expect(lines.map { $0.prefix { $0 != " " } } == ids.map { $0.prefix(13) })
    }

    @Test func `a wide window shows all columns in full`() throws {
        let lines = try table(window: 200, reason: "no route to host").lines(withHeader: true)
        #expect(lines[0].split(separator: " ") == ["ID", "AGE", "STATE", "METHOD", "URL", "TRIES", "REASON"])
        #expect(lines[1].hasPrefix(ids[0]) && lines[1].contains("/2026/11/26  4      no route to host"))
    }
}

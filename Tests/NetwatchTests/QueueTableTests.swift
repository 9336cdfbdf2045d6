internal import Foundation
internal import NetwatchService
internal import Testing

@testable internal import netwatch

/// How `netwatch queue list` fits its columns into a window.
@Suite struct QueueTableTests {
    private let ids = ["01a1fd77-5b52-70f7-a8f1-b9fb1907155b", "01a1fd77-5b60-7a01-b1de-5cf1f09a3e11"]

    /// - Parameter waiting: What the requests wait for, and the time of their next attempt.
    private func table(window: Int?, reason: String, waiting: (String, String)? = nil) throws -> QueueTable {
        let wait = waiting.map { #","waits_for":"\#($0.0)","due":"\#($0.1)""# } ?? ""
        let entries = try ids.map { id in
            let text = """
                {"v":1,"id":"\(id)","state":"pending","method":"POST","url":"https://api.example.com/orders/2026/11/26",
                "fifo":false,"priority":5,"body_bytes":0,"attempts":4,"deferrals":0,"created":"2027-01-15T08:00:00Z",
                "reason":"\(reason)"\(wait)}
                """
            return ControlMessage.Listed.whole(
                try ControlMessage.decoder.decode(ControlMessage.Entry.self, from: Data(text.utf8))
            )
        }
        return QueueTable(entries, window: window, now: Date(timeIntervalSince1970: 1_800_000_000))
    }

    @Test(arguments: [80, 90, 100, 120]) func `the reason is visible in every row`(window: Int) throws {
        let lines = try table(window: window, reason: "waiting after failures until 2027-01-15T08:05:00Z")
            .lines(
                withHeader: true
            )
        #expect(lines[0].contains("  REASON"))
        for line in lines.dropFirst() {
            #expect(line.contains("  waiting after failures") && line.count <= window, "\(line)")
            #expect(line.contains("  api.example.com") && line.contains("/26  "), "\(line)")
        }
    }

    @Test(arguments: [40, 50, 60]) func `a window that leaves no room for the reasons has no column for them`(
        window: Int
    ) throws {
        let lines = try table(window: window, reason: "waiting after failures").lines(withHeader: true)
        #expect(!lines[0].contains("REASON") && lines.allSatisfy { $0.count <= window }, "\(lines)")
        #expect(!lines[1].contains("waiting"), "\(lines)")
    }

    @Test(arguments: [("retry", true), ("time", true), ("network", false)])
    func `the time of the next attempt is listed if the request waits only for it`(
        wait: String,
        isListed: Bool
    )
        throws
    {
        let due = "2027-01-15T08:05:00.000Z"
        let lines = try table(window: nil, reason: "HTTP 503", waiting: (wait, due)).lines(withHeader: false)
        #expect(lines[0].hasSuffix("  HTTP 503" + (isListed ? ", next attempt \(due)" : "")), "\(lines)")
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

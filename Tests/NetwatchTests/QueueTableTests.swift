internal import Foundation
internal import NetwatchService
internal import OfflineQueue
internal import Testing

@testable internal import netwatch

/// How `netwatch queue list` fits its columns into a window.
@Suite struct QueueTableTests {
    private static let ids = ["01a1fd77-5b52-70f7-a8f1-b9fb1907155b", "01a1fd77-5b60-7a01-b1de-5cf1f09a3e11"]

    /// Returns the header, which only a window has, and the rows.
    ///
    /// - Parameter members: Further members of the requests in JSON, after a comma.
    private func lines(
        window: Int?,
        reason: String,
        ids: [String] = Self.ids,
        members: String = ""
    ) throws -> [String] {
        let entries = try ids.map { id in
            let text = """
                {"v":1,"id":"\(id)","sequence":1,"state":"pending","method":"POST","url":"https://api.example.com/orders/2026/11/26",
                "fifo":false,"priority":5,"body_bytes":1200,"attempts":4,"deferrals":0,"created":"2027-01-15T08:00:00Z",
                "last_error":"\(reason)"\(members)}
                """
            return ControlMessage.Listed.whole(
                try ControlMessage.decoder.decode(QueuedRequest.self, from: Data(text.utf8))
            )
        }
        let table = QueueTable(entries, window: window, now: Date(timeIntervalSince1970: 1_800_000_000))
        return table.lines(withHeader: true).map(\.plain)
    }

    @Test(arguments: [80, 90, 100, 120]) func `the reason is visible in every row`(window: Int) throws {
        let lines = try lines(window: window, reason: "waiting after failures until 2027-01-15T08:05:00Z")
        #expect(lines[0].contains("  REASON"))
        for line in lines.dropFirst() {
            #expect(line.contains("  waiting after failures") && line.count <= window, "\(line)")
            #expect(line.contains("  api.example.com") && line.contains("/26  "), "\(line)")
        }
    }

    @Test func `columns are aligned although characters are escaped`() throws {
        let lines = try lines(window: nil, reason: "a\u{2066}b", ids: ["a\u{202E}", "b"])
        let beginnings = lines.map { $0.prefix(upTo: $0.firstRange(of: "pending")!.lowerBound) }
        #expect(beginnings[0].hasPrefix(#"a\u{202E}  "#) && beginnings[0].count == beginnings[1].count)
        #expect(lines[0].hasSuffix(#"  a\u{2066}b"#), "\(lines)")
    }

    @Test(arguments: [50, 60]) func `URLs are shortened before the reasons are left out`(window: Int) throws {
        let lines = try lines(window: window, reason: "waiting after failures")
        #expect(lines[0].contains("  REASON") && lines.allSatisfy { $0.count <= window }, "\(lines)")
        for line in lines.dropFirst() {
            #expect(line.hasPrefix("01a1fd77-5b") && line.contains("26  waiting a"), "\(line)")
        }
    }

    @Test(arguments: [30, 40]) func `a window that leaves no room for the reasons has no column for them`(
        window: Int
    ) throws {
        let lines = try lines(window: window, reason: "waiting after failures")
        #expect(!lines[0].contains("REASON") && lines.allSatisfy { $0.count <= window }, "\(lines)")
        #expect(!lines[1].contains("waiting"), "\(lines)")
    }

    @Test(
        arguments: [
            ("retry", "due", "in 5m"), ("budget", "due", "in 5m"), ("time", "due", "in 5m"),
            ("network", "due", nil),
            ("lane", "until", "in 5m"), ("lane", "due", nil),
        ] as [(String, String, String?)]
    )
    func `the time of the next attempt is listed if the request waits for a time`(
        wait: String,
        member: String,
        next: String?
    ) throws {
        let time = #""\#(member)":"2027-01-15T08:05:00.000Z""#
        let given = member == "until" ? #""lane_closure":{"cause":"failures",\#(time)}"# : time
        let members = #","waits_for":"\#(wait)",\#(given)"#
        let lines = try lines(window: nil, reason: "HTTP 503", members: members)
        #expect(lines[0].contains("/26  4" + (next.map { "  \($0)" } ?? "  ") + "  "), "\(lines)")
    }

    @Test(arguments: [80, 200]) func `shortened ids differ, and are accepted as beginnings of ids`(
        window: Int
    ) throws {
        let members = #","waits_for":"earlier","waits_for_request":"\#(Self.ids[0])""#
        let lines = try lines(window: window, reason: "waiting for earlier requests", members: members)
        let rows = lines.dropFirst()
        #expect(rows.map { $0.prefix { $0 != " " } } == Self.ids.map { $0.prefix(13) })
        #expect(rows.allSatisfy { $0.hasSuffix("  waits for 01a1fd77-5b52") }, "\(lines)")
    }

    @Test func `ids with a long common beginning are cut in their middle if the window is narrow`() throws {
        let ids = ["reading-2026-11-26T10:00:00Z", "reading-2026-11-26T10:00:01Z"]
        let lines = try lines(window: 80, reason: "no route to host", ids: ids)
        let shown = lines.map { $0.prefix { $0 != " " } }
        #expect(shown == ["ID", "reading-…:00:00Z", "reading-…:00:01Z"])
        #expect(lines.dropFirst().allSatisfy { $0.contains("  no route to host") }, "\(lines)")
    }

    @Test func `a wide window shows all columns`() throws {
        let lines = try lines(window: 200, reason: "no route to host")
        let titles = ["ID", "AGE", "SIZE", "STATE", "METHOD", "URL", "TRIES", "NEXT", "REASON"]
        #expect(lines[0].split(separator: " ").map(String.init) == titles)
        #expect(lines[1].contains("  1.2 kB  pending  POST    https://api.example.com/orders/"), "\(lines)")
    }
}

internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue
internal import Testing

@testable internal import netwatch

/// The output of `netwatch queue` and `netwatch send`.
@Suite struct QueueOutputTests {
    /// Returns details of a request.
    ///
    /// - Parameters:
    ///   - members: Members of the request in JSON.
    ///   - counts: The numbers of its attempts.
    ///   - others: Members of the details in JSON, with a comma at the end.
    private func details(
        _ members: String,
        counts: (attempts: Int, deferrals: Int) = (0, 0),
        attempts: String = "[]",
        options: String = "{}",
        _ others: String = ""
    ) throws -> RequestDetails {
        let text = """
            {"v":1,"headers":[],"dependencies":[],"options":\(options),"attempts":\(attempts),\(others)
            "connect_timeout_seconds":1,"response_timeout_seconds":1,"request":{"id":"a","sequence":1,"method":"POST",
            "url":"http://a/","fifo":false,"priority":5,"body_bytes":0,"attempts":\(counts.attempts),
            "deferrals":\(counts.deferrals),"created":"2027-01-15T08:00:00Z",\(members)}}
            """
        return try ControlMessage.decoder.decode(RequestDetails.self, from: Data(text.utf8))
    }

    @Test(arguments: [
        (
            #""state":"held","hold_reason":"ambiguous""#,
            "state     held (ambiguous)"
        ),
        (
            #""state":"held","hold_reason":"auth","last_error":"HTTP 401""#,
            "state     held (auth): HTTP 401"
        ),
        (#""state":"pending","last_error":"HTTP 503""#, "state     pending: HTTP 503"),
        (#""state":"pending""#, "state     pending"),
    ])
    func `a request's state is printed once`(members: String, line: String) throws {
        #expect(RequestReport(try details(members)).lines[1] == line)
    }

    @Test(arguments: [
        (#""state":"held","hold_reason":"user","last_error":"HTTP 503""#, true),
        (
            #""state":"held","hold_reason":"auth","last_error":"HTTP 503""#,
            false
        ),
        (#""state":"pending","last_error":"HTTP 503""#, false),
    ])
    func `the last error of a held request is printed unless its state contains it`(
        members: String,
        isPrinted: Bool
    ) throws {
        let lines = RequestReport(try details(members)).lines
        #expect(lines.contains("error     HTTP 503") == isPrinted, "\(lines)")
    }

    @Test(arguments: [
        ("pending", 2, 1, 3, "attempts  2 counted, 1 not counted"),
        ("pending", 0, 0, 3, "attempts  0, 3 before the count was reset"),
        ("inflight", 1, 0, 3, "attempts  1, 3 before the count was reset"),
        ("inflight", 4, 0, 3, "attempts  4"),
        // An import takes over the count, but not the list.
        ("pending", 5, 0, 0, "attempts  5"),
    ])
    func `attempts before a retry are counted separately`(
        state: String,
        counted: Int,
        deferred: Int,
        last: Int,
        line: String
    ) throws {
        let attempt =
            #"{"number":\#(last),"started":"2027-01-15T08:00:00Z","duration_seconds":0,"curl_code":0}"#
        let details = try details(
            #""state":"\#(state)""#,
            counts: (counted, deferred),
            attempts: last > 0 ? "[\(attempt)]" : "[]"
        )
        #expect(RequestReport(details).lines.contains(line), "\(RequestReport(details).lines)")
    }

    @Test(arguments: ["retry", "lane"]) func `a request whose server may be busy is not to be flushed`(
        wait: String
    )
        throws
    {
        func waits(_ others: String = "") throws -> String? {
            let details = try details(#""state":"pending","waits_for":"\#(wait)""#, others)
            return RequestReport(details).lines.first { $0.hasPrefix("waits ") }
        }
        #expect(try waits()?.contains("`netwatch queue flush`") == true)
        let busy = try waits(#""busy_until":"\#((Date() + 60).rfc3339)","#)
        #expect(busy?.contains("flush") == false && busy?.contains("`netwatch queue retry`") == true)
    }

    @Test func `a hold is explained after a send`() {
        let held = ControlMessage.Sent(
            id: "a",
            state: "queued",
            reason: "held (auth): HTTP 401",
            holdReason: .auth
        )
        #expect(SendReport.lines(held).first == "held (auth): HTTP 401")
        #expect(SendReport.lines(held).last?.hasPrefix("the credential of the request is missing") == true)
        let waiting = ControlMessage.Sent(id: "a", state: "queued", reason: "no route to host")
        #expect(SendReport.lines(waiting) == ["queued: no route to host"])
    }

    @Test func `a hold without a credential is explained, and the time of the next try is printed`() throws {
        let next = "2027-01-15T08:05:00"
        let members = #""state":"held","hold_reason":"auth","status":401,"next_try":"\#(next)Z""#
        let lines = RequestReport(try details(members)).lines
        #expect(
            lines.contains {
                $0.hasPrefix("held      the server requires credentials, and the request has none")
            }
        )
        #expect(lines.contains { $0.hasPrefix("next try  \(next)") })
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let table = QueueTable([.whole(try details(members).summary)], window: nil, now: now)
        #expect(table.lines(withHeader: false).first?.plain.contains("in 5m") == true)
    }

    @Test func `a request's statuses are printed`() throws {
        let details = try details(
            #""state":"pending""#,
            options: #"{"retry_statuses":"404,500-599","dead_statuses":"410"}"#
        )
        let line = "statuses  retried after 404,500-599; given up after 410"
        #expect(RequestReport(details).lines.contains(line))
    }

    @Test func `a send names the request for which its request waits`() {
        var sent = ControlMessage.Sent(
            id: "b",
            state: "queued",
            reason: "waiting for earlier requests of the lane"
        )
        sent.waitsForRequest = "a"
        #expect(SendReport.lines(sent) == ["queued: waits for a"])
    }

    @Test func `the progress of a send names the cause once`() throws {
        let members =
            #""state":"pending","waits_for":"lane","lane_closure":{"cause":"failures","until":"2027-01-15T08:00:05Z"}"#
        let entry = try details(members).summary
        let sent = ControlMessage.Sent(id: "a", state: "queued", reason: "waiting after failures")
        let progress = SendReport.progress(of: sent, entry, now: Date(timeIntervalSince1970: 1_800_000_000))
        #expect(progress == "queued: waiting after failures, next attempt in 5.0 s")
    }

    @Test func `a send with a known id says that the queue already has the request`() {
        var sent = ControlMessage.Sent(id: "a", state: "delivered", status: 200)
        #expect(SendReport.lines(sent) == ["delivered: HTTP 200"])
        sent.known = true
        let known = "the queue already has a request with this id"
        #expect(SendReport.lines(sent) == [known, "delivered: HTTP 200"])
    }

    @Test(arguments: [
        (nil, "'/var/lib/my queue/export'"),
        ("it's", "--state-dir 'it'\\''s' '/var/lib/my queue/export'"),
    ])
    func `the paths of the import command are quoted for the shell`(stateDirectory: String?, end: String) {
        let command = QueueVerifyCommand.importCommand(
            for: "/var/lib/my queue/export",
            stateDirectory: stateDirectory
        )
        #expect(command == "netwatch queue import --keep-submitters \(end)")
    }

    @Test func `the import command names the encryption key of the queue`() {
        let command = QueueVerifyCommand.importCommand(for: "e", stateDirectory: nil, encryptionKey: "my key")
        #expect(command == "netwatch queue import --keep-submitters --encryption-key 'my key' e")
    }

    @Test func `only the queue gives requests up, and can try them again`() {
        func lines(id: String?) -> [String] {
            SendReport.lines(ControlMessage.Sent(id: id, state: "dead", status: 404, reason: "HTTP 404"))
        }
        #expect(lines(id: nil) == ["not delivered: HTTP 404"])
        #expect(lines(id: "a") == ["dead: HTTP 404", "`netwatch queue retry a` tries it again"])
    }

    private func statistics(paused: Bool = false, lanes: [(String, String)] = [], closed: Int = 0) throws
        -> QueueStatistics
    {
        let closure = #"""
            {"host":"a","lane":"","origin":"http://a:80","fifo":false,
            "closure":{"cause":"failures","until":"2027-01-15T08:00:00Z"}}
            """#
        let closures = Array(repeating: closure, count: closed).joined(separator: ",")
        let list = lanes.map { #"{"host":"\#($0.0)","lane":"\#($0.1)"}"# }.joined(separator: ",")
        let text = """
            {"v":1,"counts":{},"requests":0,"bytes":0,"lanes":0,"paused":\(paused),"paused_lanes":[\(list)],
            "closed_lanes":[\(closures)],"database_bytes":0,"free_bytes":0,"completions":[],"disk_reserve_bytes":0,
            "disk_full":false,"encryption":[],"staged_bodies":0,"staged_bytes":0}
            """
        return try ControlMessage.decoder.decode(QueueStatistics.self, from: Data(text.utf8))
    }

    @Test func `the statistics list what is paused`() throws {
        func lines(_ paused: Bool, _ lanes: [(String, String)]) throws -> [String] {
            Array(
                StatisticsReport(try statistics(paused: paused, lanes: lanes)).lines.dropFirst(3).dropLast(2)
            )
        }
        #expect(try lines(false, []) == ["paused      no"])
        #expect(try lines(true, []) == ["paused      the whole queue"])
        #expect(try lines(false, [("a", "l")]) == ["paused      a, lane l"])
        #expect(
            try lines(true, [("a", ""), ("b", "l")])
                == ["paused      the whole queue", "            a, no label", "            b, lane l"]
        )
    }

    @Test(arguments: [
        (0, "empty"), (1, "empty, 1 lane closed"), (999, "empty, 999 lanes closed"),
        (1000, "empty, 1000 or more lanes closed"),
    ])
    func `a truncated list of closed lanes is not reported as an exact number`(count: Int, text: String)
        throws
    {
        let queue = ServiceSummary.Queue(try statistics(closed: count))
        let summary = ServiceSummary(state: .running, socket: "", queue: queue)
        #expect(summary.queueText(now: Date()) == text)
    }

    @Test func `a queue in which a scan has found damage needs attention`() throws {
        let queue = ServiceSummary.Queue(try statistics(closed: 0))
        var summary = ServiceSummary(state: .running, socket: "", queue: queue)
        #expect(summary.queueStatus == .yes)
        let scan = Data(#"{"finding_count":1}"#.utf8)
        summary.scan = try ControlMessage.decoder.decode(ControlMessage.Scan.self, from: scan)
        #expect(summary.queueStatus == .no)
        #expect(
            summary.storeText == "damaged: a scan has found 1 problem; `netwatch doctor` shows what to do"
        )
    }

    @Test func `a queue whose disk is full needs attention, and says how much must stay free`() throws {
        var statistics = try statistics(closed: 0)
        (statistics.isDiskFull, statistics.diskReserve) = (true, 16_800_000)
        statistics.freeBytes = 10_700_000
        let queue = ServiceSummary.Queue(statistics)
        let summary = ServiceSummary(state: .running, socket: "", queue: queue)
        #expect(summary.queueStatus == .no)
        let text =
            "the disk is full, so new requests are refused, large ones first; `netwatch doctor` shows what to do"
        #expect(summary.storeText == text)
        let line =
            "free disk   10.7 MB, of 16.8 MB that must stay free: new requests are refused, large ones first"
        #expect(StatisticsReport(statistics).lines.last == line)
    }

    @Test(arguments: [
        (nil, nil), (0, nil), (1, "1 path corrected after up to a minute"),
        (3, "3 paths corrected after up to a minute"),
    ])
    func `the status mentions corrections of the audit only if there are any`(count: Int?, text: String?) {
        let summary = ServiceSummary(state: .running, socket: "", auditCorrections: count)
        #expect(summary.auditText == text)
    }

    @Test(arguments: [["-X", "get"], ["-X", "Post", "--queue", "never"]])
    func `a lowercase method is a wrong argument, with its correct spelling`(options: [String]) throws {
        let error = try #require(throws: (any Error).self) { try SendCommand.parse(["http://a/"] + options) }
        #expect(SendCommand.exitCode(for: error).rawValue == 64)
        let meant = options[1].uppercased()
        #expect(SendCommand.message(for: error).hasSuffix("use `\(meant)`"))
        #expect(try SendCommand.parse(["http://a/", "-X", "purge"]).method == "purge")
    }

    @Test(arguments: [
        (QueueError.Code.invalidConfiguration, netwatch.ExitStatus.unusableStore),
        (.storeUnusable, .unusableStore),
        (.alreadyOwned, .unknown),
    ])
    func `a permanently unusable queue exits with 78`(code: QueueError.Code, status: netwatch.ExitStatus) {
        #expect(CommandError(opening: QueueError(code, "")).status == status)
    }

    /// The status and the error of an event are those of the previous attempt.
    @Test(arguments: [
        ("started", "started  a"), ("postponed", "postponed  a  HTTP 503"),
        ("cancelled", "cancelled  a  last error: HTTP 503"),
    ])
    func `an error is not shown as the cause of a start or a drop`(kind: String, end: String) {
        var event = ControlMessage.Event(id: "1", event: kind, time: Date(timeIntervalSince1970: 0))
        (event.request, event.status, event.reason) = ("a", 503, "HTTP 503")
        #expect(EventPrinter.line(event).hasSuffix("  \(end)"))
    }
}

internal import Foundation
internal import Glibc
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The queries and edits that the routes of the queue accept and reject.
@Suite struct QueueRoutesTests {
    private let directory = try! ScratchDirectory()

    @Test func `a filter with a tag that no request can have is rejected`() async throws {
        let queue = try await directory.openQueue()
        let targets = ["/v1/requests?tag=%C3%BC", "/v1/requests?tag=", "/v1/events?tag=%C3%BC"]
        for target in targets {
            let refused = try await queue.respond(.GET, target)
            #expect(refused.status == 400 && refused.code == "invalid_tag", "\(target)")
            #expect(refused.detail.hasSuffix("it must be 1 to 255 bytes of printable ASCII"))
        }
        let edit = try await queue.respond(.POST, "/v1/queue/cancel", #"{"filter":{"tag":"ü"}}"#)
        #expect(edit.code == "invalid_tag" && edit.detail.hasPrefix("`tag` is `ü`;"), "\(edit.detail)")
        await queue.stop()
    }

    @Test func `a refused edit names the states that it accepts`() async throws {
        let queue = try await directory.openQueue()
        let request = QueueRequest(method: "GET", url: "http://a.example/")
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "a"))
        let released = try await queue.respond(.POST, "/v1/requests/a/release")
        #expect(released.detail == "`a` is pending, so release is not possible; accepted states: held")
        _ = try await queue.respond(.DELETE, "/v1/requests/a")
        let held = try await queue.respond(.POST, "/v1/requests/a/hold")
        #expect(held.status == 409 && held.code == "refused")
        #expect(
            held.detail
                == "`a` is cancelled, so hold is not possible; accepted states: pending, blocked, inflight, held"
        )
        await queue.stop()
    }

    @Test func `flush, pause and resume report the pauses`() async throws {
        let queue = try await directory.openQueue()
        let request = QueueRequest(method: "GET", url: "http://a.example/")
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "a"))
        func pauses(_ action: String, _ body: String = "") async throws -> [Bool?] {
            let members = try await queue.respond(.POST, "/v1/queue/\(action)", body).members
            return [members["was_paused"] as? Bool, members["queue_paused"] as? Bool]
        }
        let host = #"{"host":"a.example"}"#
        #expect(try await pauses("pause", host) == [false, false])
        #expect(try await pauses("pause", host) == [true, false])
        let flushed = try await queue.respond(.POST, "/v1/queue/flush", host).members
        #expect(flushed["paused_lanes"] as? [[String: String]] == [["host": "a.example", "lane": ""]])
        #expect(try await pauses("pause") == [true, true])
        #expect(try await pauses("resume", host) == [true, true])
        #expect(try await pauses("resume", host) == [false, true])
        #expect(try await pauses("flush") == [nil, true])
        #expect(try await pauses("resume") == [true, false])
        #expect(try await pauses("resume") == [false, false])
        await queue.stop()
    }

    /// A source whose credentials cannot be read now.
    private struct FailingSource: CredentialSource {
        func credential(named name: String) async throws -> QueueCredential {
            throw WithheldReason(.retry, "EIO")
        }

        func names() async -> [String] { [] }
    }

    @Test func `an unknown credential is refused, and an unusable one only for a change`() async throws {
        let queue = try await directory.openQueue()
        try await queue.register(try QueueCredential(.bearer("t"), origins: ["https://b.example"]), as: "c")
        mkdir(directory.file("credentials"), 0o700)
        let text = "type: bearer\norigins: https://b.example\nvalue: t"
        for (name, content, mode) in [("good", text, 0o600), ("open", text, 0o644), ("empty", "", 0o600)] {
            let file = try directory.write(Array(content.utf8), to: "credentials/\(name)")
            #expect(chmod(file, mode_t(mode)) == 0)
        }
        let path = directory.file("credentials")
        await queue.use(CredentialDirectory(path: path))
        let cases = [
            (
                "nope", "unknown_credential",
                "there is no credential `nope`: \(path)/nope does not exist; known: c, empty, good, open"
            ),
            (
                "open", "unusable_credential",
                "the credential `open` cannot be used: \(path)/open has the mode 0644; use `chmod 600`"
            ),
            (
                "empty", "unusable_credential",
                "the credential `empty` cannot be used: \(path)/empty is empty"
            ),
        ]
        let set = "/v1/requests/a/credential"
        let always = urlMember + #","queue":"always""#
        for (name, code, detail) in cases {
            let webhook = #""on_done":{"url":"https://b.example/","credential":"\#(name)"}"#
            for member in [#""credential":"\#(name)""#, webhook] {
                let sent = try await queue.respond(.POST, "/v1/requests", "{\(always),\(member)}")
                if code == "unknown_credential" {
                    #expect(sent.status == 400 && sent.code == code, "\(sent.members)")
                    #expect(sent.detail == detail)
                } else {
                    #expect(sent.status == 202, "\(sent.members)")
                }
            }
            let change = try await queue.respond(.POST, set, #"{"credential":"\#(name)"}"#)
            #expect(change.code == code && change.detail == detail, "\(change.members)")
        }
        #expect(try await queue.list().requests.count == 4)
        // The credential may be removed after a request is stored, and the request may be repeated.
        let known = QueueRequest(method: "GET", url: "https://b.example/")
        _ = try await queue.enqueue(known, options: EnqueueOptions(id: "known"))
        let repeated = "{\(always),\"id\":\"known\",\"credential\":\"nope\"}"
        let again = try await queue.respond(.POST, "/v1/requests", repeated)
        #expect(again.code == "id_conflict", "\(again.members)")
        // The error of the directory itself is reported.
        await queue.use(CredentialDirectory(path: "\(path)/good"))
        let unreadable = try await queue.respond(.POST, set, #"{"credential":"x"}"#)
        #expect(unreadable.code == "unusable_credential", "\(unreadable.members)")
        #expect(unreadable.detail.hasSuffix("\(path)/good/x: Not a directory"), "\(unreadable.detail)")
        // A change is not refused because the credential cannot be read for a moment.
        await queue.use(FailingSource())
        let change = try await queue.respond(.POST, set, #"{"credential":"x"}"#)
        #expect(change.code == "unknown_request", "\(change.members)")
        await queue.stop()
    }

    @Test(arguments: [
        (
            "/v1/requests", #"{\#(urlMember),"lanes":"a"}"#,
            "`lanes` is not a known name; accepted: url, method, headers,"
        ),
        (
            "/v1/requests", #"{\#(urlMember),"ttlSeconds":1}"#,
            "`ttlSeconds` is not a known name; accepted: url"
        ),
        (
            "/v1/requests", #"{\#(urlMember),"idempotency":{"name":"k"}}"#,
            "`idempotency.name` is not a known name; accepted: key, header, quoted, none"
        ),
        (
            "/v1/requests", #"{\#(urlMember),"staged":{"id":"a","size":1,"sha":null}}"#,
            "`staged.sha` is not a known name; accepted: id, size"
        ),
        (
            "/v1/queue/hold", #"{"ids":[],"all":true}"#,
            "`all` is not a known name; accepted: ids, filter, new_key, dry_run"
        ),
        (
            "/v1/queue/cancel", #"{"filter":{"label":"a"}}"#,
            "`filter.label` is not a known name; accepted: state, host, lane"
        ),
        ("/v1/queue/cancel", #"{"filter":{},"ids":[]}"#, "either `ids` or `filter` is required"),
        ("/v1/queue/cancel", "{}", "either `ids` or `filter` is required"),
        (
            "/v1/queue/hold", #"{"filter":{},"new_key":true}"#,
            "`new_key` is only accepted for retry, not for hold"
        ),
        ("/v1/queue/hold", #"{"ids":[],"dry_run":true}"#, "`dry_run` requires `filter`"),
        ("/v1/requests/a/retry", #"{"key":true}"#, "`key` is not a known name; accepted: new_key"),
        ("/v1/queue/pause", #"{"hosts":"a"}"#, "`hosts` is not a known name; accepted: host, lane"),
        ("/v1/queue/flush", #"{"hosts":"a"}"#, "`hosts` is not a known name; accepted: host, lane"),
        (
            "/v1/queue/import", #"{"staged":{"id":"a","size":1},"force":true}"#,
            "`force` is not a known name; accepted: staged"
        ),
    ])
    func `an unknown member is reported with the accepted ones`(
        path: String,
        body: String,
        words: String
    ) async throws {
        let queue = try await directory.openQueue()
        _ = try await queue.enqueue(
            QueueRequest(method: "POST", url: "http://127.0.0.1:1/"),
            options: EnqueueOptions(id: "a")
        )
        let refused = try await queue.respond(.POST, path, body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail.hasPrefix(words), "\(refused.detail)")
        let statistics = try await queue.statistics()
        #expect(statistics.requests == 1 && !statistics.isPaused)
        await queue.stop()
    }

    @Test(arguments: [
        ("/v1/requests?state=lost", "invalid_state", "one of pending, blocked, inflight, held, delivered,"),
        ("/v1/queue/export?dead=perhaps", "invalid_dead", "it must be true or false"),
        (
            "/v1/requests?sate=held", "unknown_parameter",
            "accepted: state, host, lane, tag, submitter, limit, after"
        ),
        ("/v1/queue/stats?host=a", "unknown_parameter", "no name is accepted"),
        ("/v1/requests?limit=1&limit=2", "repeated_parameter", "`limit` occurs twice; it accepts one value"),
    ])
    func `an invalid query is rejected with the accepted values`(
        target: String,
        code: String,
        words: String
    ) async throws {
        let queue = try await directory.openQueue()
        let refused = try await queue.respond(.GET, target)
        #expect(refused.status == 400 && refused.code == code)
        #expect(refused.detail.contains(words), "\(refused.detail)")
        await queue.stop()
    }

    @Test func `a list accepts several states`() async throws {
        let queue = try await directory.openQueue()
        for id in ["a", "b", "c"] {
            let request = QueueRequest(method: "GET", url: "http://a.example/")
            _ = try await queue.enqueue(request, options: EnqueueOptions(id: id))
        }
        _ = try await queue.respond(.POST, "/v1/requests/a/hold")
        _ = try await queue.respond(.DELETE, "/v1/requests/b")
        let listed = try await queue.respond(.GET, "/v1/requests?state=held&state=cancelled")
        let requests = try #require(listed.members["requests"] as? [[String: Any]], "\(listed.members)")
        #expect(requests.map { $0["id"] as? String } == ["a", "b"])
        await queue.stop()
    }

    @Test(arguments: [#"["lost"]"#, "[]"]) func `a filter with an unknown state, or with none, is rejected`(
        states: String
    ) async throws {
        let queue = try await directory.openQueue()
        let request = QueueRequest(method: "GET", url: "http://a.example/")
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "a"))
        let refused = try await queue.respond(.POST, "/v1/queue/cancel", #"{"filter":{"state":\#(states)}}"#)
        #expect(refused.status == 400 && refused.code == "invalid_state")
        #expect(try await queue.request("a")?.summary.state == .pending)
        await queue.stop()
    }

    @Test func `only a retry accepts a new key`() async throws {
        let queue = try await directory.openQueue()
        let refused = try await queue.respond(.POST, "/v1/queue/hold", #"{"ids":[],"new_key":true}"#)
        #expect(refused.code == "malformed_body")
        #expect(refused.detail == "`new_key` is only accepted for retry, not for hold")
        let usual = try await queue.respond(.POST, "/v1/queue/hold", #"{"ids":[],"new_key":false}"#)
        #expect(usual.status == 200)
        await queue.stop()
    }

    @Test func `paused lanes are listed in the form that resume accepts, and an unknown lane gets 404`()
        async throws
    {
        let queue = try await directory.openQueue()
        for lane in [nil, "l"] {
            _ = try await queue.enqueue(
                QueueRequest(method: "POST", url: "http://a.example/"),
                options: EnqueueOptions(lane: lane)
            )
        }
        let unknown = try await queue.respond(.POST, "/v1/queue/pause", #"{"host":"b.example"}"#)
        #expect(unknown.status == 404 && unknown.code == "unknown_lane")
        let paused = try await queue.respond(.POST, "/v1/queue/pause", #"{"host":"a.example"}"#)
        #expect(paused.members["lanes"] as? Int == 2)
        func pausedLanes() async throws -> [[String: String]] {
            let statistics = try await queue.respond(.GET, "/v1/queue/stats").members
            #expect(statistics["paused"] as? Bool == false)
            return try #require(statistics["paused_lanes"] as? [[String: String]])
        }
        let lanes = try await pausedLanes()
        #expect(lanes == [["host": "a.example", "lane": ""], ["host": "a.example", "lane": "l"]])
        let first = String(decoding: try JSONEncoder().encode(lanes[0]), as: UTF8.self)
        let resumed = try await queue.respond(.POST, "/v1/queue/resume", first)
        #expect(resumed.members["lanes"] as? Int == 1)
        #expect(try await pausedLanes() == [["host": "a.example", "lane": "l"]])
        #expect(try await queue.respond(.POST, "/v1/queue/resume").status == 200)
        #expect(try await pausedLanes().isEmpty)
        await queue.stop()
    }
}

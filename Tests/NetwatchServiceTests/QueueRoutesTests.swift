internal import Foundation
internal import Glibc
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// Requests that the queue routes accept and reject.
@Suite struct QueueRoutesTests {
    private let directory = try! ScratchDirectory()

    /// Opens a queue without starting it, so that it sends nothing.
    private func open() async throws -> OfflineQueue {
        var configuration = OfflineQueue.Configuration(directory: directory.file("state"))
        // The credentials can be read at once, but on a busy machine their tasks may start late.
        (configuration.credentialWait, configuration.credentialTimeout) = (.seconds(300), .seconds(600))
        return try await OfflineQueue(configuration: configuration)
    }

    private struct Answer {
        let status: UInt
        let members: [String: Any]

        var code: String? { members["code"] as? String }
        var detail: String { members["detail"] as? String ?? "" }
    }

    private func answer(
        _ queue: OfflineQueue,
        _ method: HTTPMethod,
        _ target: String,
        _ body: String = ""
    ) async throws -> Answer {
        let request = ControlRequest(
            method: method,
            target: try #require(RequestTarget(target)),
            body: Array(body.utf8),
            peer: PeerCredentials(pid: 1, uid: 0, gid: 0)
        )
        let response = await QueueRoutes(queue: queue, isRunning: true).router.respond(to: request)
        let object = try JSONSerialization.jsonObject(with: Data(response.body))
        return Answer(status: response.status.code, members: try #require(object as? [String: Any]))
    }

    private static let url = #""url":"http://127.0.0.1:1/""#

    @Test(arguments: [
        (#"{\#(url),"url":"http://127.0.0.1:2/"}"#, "url"),
        (#"{\#(url),"\u0075rl":"http://127.0.0.1:2/"}"#, "url"),
        (#"{\#(url),"idempotency":{"key":"a","key":"b"}}"#, "key"),
        (#"{\#(url),"headers":[["a","{"]],"fifo":true,"fifo":false}"#, "fifo"),
        (#"{\#(url),"staged":{"id":"a","size":1},"staged":null}"#, "staged"),
    ])
    func `a duplicate member is rejected by name, and nothing is stored`(body: String, name: String)
        async throws
    {
        let queue = try await open()
        let refused = try await answer(queue, .POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail == "the member `\(name)` occurs twice", "\(refused.detail)")
        #expect(try await queue.list().requests.isEmpty)
    }

    @Test func `a tag and a webhook are stored, listed and shown`() async throws {
        let queue = try await open()
        try await queue.register(try QueueCredential(.bearer("t"), origins: ["https://b.example"]), as: "c")
        let body = #"""
            {\#(Self.url),"queue":"always","id":"a","tag":"t","on_done":{"url":"https://b.example/","credential":"c"}}
            """#
        #expect(try await answer(queue, .POST, "/v1/requests", body).status == 202)
        let other = #"{\#(Self.url),"queue":"always","id":"b","tag":"u"}"#
        #expect(try await answer(queue, .POST, "/v1/requests", other).status == 202)
        let listed =
            try await answer(queue, .GET, "/v1/requests?tag=t").members["requests"] as? [[String: Any]]
        #expect(listed?.map { $0["id"] as? String } == ["a"] && listed?.first?["tag"] as? String == "t")
        let shown = try await answer(queue, .GET, "/v1/requests/a").members["on_done"] as? [String: Any]
        #expect(shown?["url"] as? String == "https://b.example/" && shown?["credential"] as? String == "c")
        let dropped = try await answer(queue, .POST, "/v1/queue/drop", #"{"filter":{"tag":"u"}}"#)
        #expect(dropped.members["done"] as? Int == 1)
        let waiting =
            try await answer(queue, .GET, "/v1/queue/stats").members["completions"] as? [[String: Any]]
        #expect(waiting?.map { $0["tag"] as? String } == ["u"])
        #expect(waiting?.map { $0["requests"] as? Int } == [1])
        await queue.stop()
    }

    @Test func `a filter with a tag that no request can have is rejected`() async throws {
        let queue = try await open()
        let targets = ["/v1/requests?tag=%C3%BC", "/v1/requests?tag=", "/v1/events?tag=%C3%BC"]
        for target in targets {
            let refused = try await answer(queue, .GET, target)
            #expect(refused.status == 400 && refused.code == "invalid_tag", "\(target)")
            #expect(refused.detail.hasSuffix("it must be 1 to 255 bytes of printable ASCII"))
        }
        let edit = try await answer(queue, .POST, "/v1/queue/drop", #"{"filter":{"tag":"ü"}}"#)
        #expect(edit.code == "invalid_tag" && edit.detail.hasPrefix("`tag` is `ü`;"), "\(edit.detail)")
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
        let queue = try await open()
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
        let always = Self.url + #","queue":"always""#
        for (name, code, detail) in cases {
            let webhook = #""on_done":{"url":"https://b.example/","credential":"\#(name)"}"#
            for member in [#""credential":"\#(name)""#, webhook] {
                let sent = try await answer(queue, .POST, "/v1/requests", "{\(always),\(member)}")
                if code == "unknown_credential" {
                    #expect(sent.status == 400 && sent.code == code, "\(sent.members)")
                    #expect(sent.detail == detail)
                } else {
                    #expect(sent.status == 202, "\(sent.members)")
                }
            }
            let change = try await answer(queue, .POST, set, #"{"credential":"\#(name)"}"#)
            #expect(change.code == code && change.detail == detail, "\(change.members)")
        }
        #expect(try await queue.list().requests.count == 4)
        // The credential may be removed after a request is stored, and the request may be repeated.
        let known = QueueRequest(method: "GET", url: "https://b.example/")
        _ = try await queue.enqueue(known, options: EnqueueOptions(id: "known"))
        let repeated = "{\(always),\"id\":\"known\",\"credential\":\"nope\"}"
        let again = try await answer(queue, .POST, "/v1/requests", repeated)
        #expect(again.code == "id_conflict", "\(again.members)")
        // The error of the directory itself is reported.
        await queue.use(CredentialDirectory(path: "\(path)/good"))
        let unreadable = try await answer(queue, .POST, set, #"{"credential":"x"}"#)
        #expect(unreadable.code == "unusable_credential", "\(unreadable.members)")
        #expect(unreadable.detail.hasSuffix("\(path)/good/x: Not a directory"), "\(unreadable.detail)")
        // A change is not refused because the credential cannot be read for a moment.
        await queue.use(FailingSource())
        let change = try await answer(queue, .POST, set, #"{"credential":"x"}"#)
        #expect(change.code == "unknown_request", "\(change.members)")
        await queue.stop()
    }

    @Test(arguments: [
        (#""tag":"""#, "invalid_option", "the tag"),
        (#""tag":"ä""#, "invalid_option", "the tag"),
        (#""on_done":{"url":"ftp://b.example/"}"#, "invalid_url", "the webhook is refused"),
        (#""on_done":{"url":"https://u:p@b.example/"}"#, "invalid_url", "the webhook is refused"),
        (#""on_done":{"url":"https://b.example/?token=x"}"#, "invalid_url", "the webhook is refused"),
        (
            #""on_done":{"url":"https://b.example/","credential":"../x"}"#, "invalid_option",
            "the webhook is refused"
        ),
        (#""on_done":{"uri":"https://b.example/"}"#, "malformed_body", ""),
        (#""on_done":"https://b.example/""#, "malformed_body", ""),
    ])
    func `an invalid tag or webhook is rejected, and nothing is stored`(
        member: String,
        code: String,
        detail: String
    )
        async throws
    {
        let queue = try await open()
        let refused = try await answer(queue, .POST, "/v1/requests", "{\(Self.url),\(member)}")
        #expect(refused.status == 400 && refused.code == code, "\(refused.members)")
        #expect(refused.detail.hasPrefix(detail), "\(refused.detail)")
        #expect(try await queue.list().requests.isEmpty)
        await queue.stop()
    }

    @Test(arguments: [
        (#"{\#(url),"idempotency":{"kye":"a"}}"#, "idempotency.kye"),
        (#"{\#(url),"staged":{"id":"a","size":1,"sise":1}}"#, "staged.sise"),
        (#"{\#(url),"ttlSeconds":1}"#, "ttlSeconds"),
    ])
    func `an unknown member is rejected by its path`(
        body: String,
        path: String
    )
        async throws
    {
        let queue = try await open()
        // Reflection finds the member names once per message type. The first message here lacks most members.
        let plain = try await answer(queue, .POST, "/v1/requests", #"{\#(Self.url),"queue":"always"}"#)
        #expect(plain.status == 202, "\(plain.detail)")
        let null = #"{\#(Self.url),"queue":"always","idempotency":null}"#
        #expect(try await answer(queue, .POST, "/v1/requests", null).status == 202)
        let refused = try await answer(queue, .POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail.contains("`\(path)`"), "\(refused.detail)")
    }

    @Test func `the same name in other objects, or as a value, is not a duplicate`() async throws {
        let queue = try await open()
        let body =
            #"{\#(Self.url),"queue":"always","body":"\"url\",\"url\"","headers":[["url","url"],["url","fifo"]],"#
            + #""lane":"fifo","fifo":true,"idempotency":{"key":"key","header":"X"}}"#
        let taken = try await answer(queue, .POST, "/v1/requests", body)
        #expect(taken.status == 202, "\(taken.detail)")
    }

    @Test(arguments: [
        "connect_timeout_seconds", "response_timeout_seconds", "total_timeout_seconds",
    ])
    func `a timeout is stored and shown, and one out of range is rejected`(member: String) async throws {
        let queue = try await open()
        for seconds in ["0", "-1", "0.0001", "86401", "1e300"] {
            let refused = try await answer(
                queue,
                .POST,
                "/v1/requests",
                #"{\#(Self.url),"\#(member)":\#(seconds)}"#
            )
            #expect(
                refused.status == 400 && refused.code == "invalid_option",
                "\(seconds): \(refused.detail)"
            )
            #expect(refused.detail.contains("1 ms to 24 hours"), "\(refused.detail)")
        }
        let body = #"{\#(Self.url),"queue":"always","id":"a","\#(member)":2.5}"#
        #expect(try await answer(queue, .POST, "/v1/requests", body).status == 202)
        let details = try await answer(queue, .GET, "/v1/requests/a")
        #expect(details.members[member] as? Double == 2.5)
        let usual: [String: Double] = ["connect_timeout_seconds": 15, "response_timeout_seconds": 300]
        for (name, value) in usual where name != member {
            #expect(details.members[name] as? Double == value)
        }
    }

    @Test(arguments: [
        (
            "/v1/requests", #"{\#(url),"lanes":"a"}"#,
            "`lanes` is not a known name; accepted: url, method, headers,"
        ),
        ("/v1/requests", #"{\#(url),"ttlSeconds":1}"#, "`ttlSeconds` is not a known name; accepted: url"),
        (
            "/v1/requests", #"{\#(url),"idempotency":{"name":"k"}}"#,
            "`idempotency.name` is not a known name; accepted: key, header, quoted, none"
        ),
        (
            "/v1/requests", #"{\#(url),"staged":{"id":"a","size":1,"sha":null}}"#,
            "`staged.sha` is not a known name; accepted: id, size"
        ),
        (
            "/v1/queue/hold", #"{"ids":[],"all":true}"#,
            "`all` is not a known name; accepted: ids, filter, new_key, dry_run"
        ),
        (
            "/v1/queue/drop", #"{"filter":{"label":"a"}}"#,
            "`filter.label` is not a known name; accepted: state, host, lane"
        ),
        ("/v1/queue/drop", #"{"filter":{},"ids":[]}"#, "either `ids` or `filter` is required"),
        ("/v1/queue/drop", "{}", "either `ids` or `filter` is required"),
        (
            "/v1/queue/hold", #"{"filter":{},"new_key":true}"#,
            "`new_key` is only accepted for retry, not for hold"
        ),
        ("/v1/queue/hold", #"{"ids":[],"dry_run":true}"#, "`dry_run` requires `filter`"),
        ("/v1/requests/a/retry", #"{"key":true}"#, "`key` is not a known name; accepted: new_key"),
        ("/v1/queue/pause", #"{"hosts":"a"}"#, "`hosts` is not a known name; accepted: host, lane"),
        ("/v1/queue/flush", #"{"host":"a"}"#, "`host` is not a known name; no name is accepted"),
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
        let queue = try await open()
        _ = try await queue.enqueue(
            QueueRequest(method: "POST", url: "http://127.0.0.1:1/"),
            options: EnqueueOptions(id: "a")
        )
        let refused = try await answer(queue, .POST, path, body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail.hasPrefix(words), "\(refused.detail)")
        let statistics = try await queue.statistics()
        #expect(statistics.requests == 1 && !statistics.isPaused)
        await queue.stop()
    }

    @Test func `every documented member is accepted, also as null`() async throws {
        let queue = try await open()
        let all = """
            {\(Self.url),"method":"POST","headers":[["X-A","b"]],"body":"c","queue":"always","id":"a","lane":"l",
            "fifo":false,"priority":1,"ttl_seconds":60,"max_attempts":3,"replace_key":"r","after":[],
            "expect":"status=2xx","at_most_once":false,"durability":"normal","when_full":"reject",
            "idempotency":{"key":"k","header":"X-Key","quoted":true,"none":false},
            "deadline":null,"not_before":null,"body_base64":null,"staged":null,"idempotency_key":null}
            """
        #expect(try await answer(queue, .POST, "/v1/requests", all).status == 202)
        await queue.stop()
    }

    @Test func `a signed URL is accepted only with its option, and not shown`() async throws {
        let queue = try await open()
        let signed = #""url":"http://127.0.0.1:1/?X-Amz-Signature=hush","queue":"always","id":"a""#
        let refused = try await answer(queue, .POST, "/v1/requests", "{\(signed)}")
        #expect(refused.status == 400 && refused.code == "invalid_url")
        let accepted = try await answer(queue, .POST, "/v1/requests", "{\(signed),\"allow_signature\":true}")
        #expect(accepted.status == 202)
        let url = try await queue.request("a")?.summary.url
        #expect(url == "http://127.0.0.1:1/?X-Amz-Signature=REDACTED")
        await queue.stop()
    }

    @Test(arguments: [
        ("queue", "never", "auto, always"), ("durability", "some", "full, normal"),
        ("when_full", "cry", "reject, drop-oldest, drop-newest, block"),
    ])
    func `an unknown value is reported with the accepted ones`(
        member: String,
        word: String,
        accepted: String
    ) async throws {
        let queue = try await open()
        let body = #"{\#(Self.url),"\#(member)":"\#(word)"}"#
        let refused = try await answer(queue, .POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "invalid_option")
        #expect(refused.detail == "`\(member)` is `\(word)`; it must be one of \(accepted)")
        #expect(try await queue.statistics().requests == 0)
        await queue.stop()
    }

    @Test(arguments: [
        ("/v1/requests?state=lost", "invalid_state", "one of pending, blocked, inflight, held, delivered,"),
        ("/v1/queue/export?dead=perhaps", "invalid_dead", "it must be true or false"),
        ("/v1/requests?sate=held", "unknown_parameter", "accepted: state, host, lane, tag, limit, after"),
        ("/v1/queue/stats?host=a", "unknown_parameter", "no name is accepted"),
    ])
    func `an invalid query is rejected with the accepted values`(
        target: String,
        code: String,
        words: String
    ) async throws {
        let queue = try await open()
        let refused = try await answer(queue, .GET, target)
        #expect(refused.status == 400 && refused.code == code)
        #expect(refused.detail.contains(words), "\(refused.detail)")
        await queue.stop()
    }

    @Test func `a filter with an unknown state is rejected`() async throws {
        let queue = try await open()
        let refused = try await answer(queue, .POST, "/v1/queue/drop", #"{"filter":{"state":["lost"]}}"#)
        #expect(refused.status == 400 && refused.code == "invalid_state")
        await queue.stop()
    }

    @Test func `a known id with other content gets 422`() async throws {
        let queue = try await open()
        let message = #"{\#(Self.url),"queue":"always","id":"a","body":"x"}"#
        #expect(try await answer(queue, .POST, "/v1/requests", message).status == 202)
        #expect(try await answer(queue, .POST, "/v1/requests", message).status == 202)
        let other = #"{\#(Self.url),"queue":"always","id":"a","body":"y","method":"PUT"}"#
        let refused = try await answer(queue, .POST, "/v1/requests", other)
        #expect(refused.status == 422 && refused.code == "id_conflict")
        #expect(refused.detail.hasSuffix("different: method, body"), "\(refused.detail)")
        await queue.stop()
    }

    @Test(arguments: ["get", "Post", "dELETE", "patch"])
    func `a lowercase method is rejected with its correct spelling`(method: String) async throws {
        let queue = try await open()
        let body = #"{\#(Self.url),"method":"\#(method)"}"#
        let refused = try await answer(queue, .POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "invalid_method")
        #expect(refused.detail.hasSuffix("use `\(method.uppercased())`"), "\(refused.detail)")
        let own = try await answer(queue, .POST, "/v1/requests", #"{\#(Self.url),"method":"purge"}"#)
        #expect(own.status == 202, "an unknown method is accepted")
        await queue.stop()
    }

    @Test func `only a retry accepts a new key`() async throws {
        let queue = try await open()
        let refused = try await answer(queue, .POST, "/v1/queue/hold", #"{"ids":[],"new_key":true}"#)
        #expect(refused.code == "malformed_body")
        #expect(refused.detail == "`new_key` is only accepted for retry, not for hold")
        let usual = try await answer(queue, .POST, "/v1/queue/hold", #"{"ids":[],"new_key":false}"#)
        #expect(usual.status == 200)
        await queue.stop()
    }

    @Test func `paused lanes are listed in the form that resume accepts, and an unknown lane gets 404`()
        async throws
    {
        let queue = try await open()
        for lane in [nil, "l"] {
            _ = try await queue.enqueue(
                QueueRequest(method: "POST", url: "http://a.example/"),
                options: EnqueueOptions(lane: lane)
            )
        }
        let unknown = try await answer(queue, .POST, "/v1/queue/pause", #"{"host":"b.example"}"#)
        #expect(unknown.status == 404 && unknown.code == "unknown_lane")
        let paused = try await answer(queue, .POST, "/v1/queue/pause", #"{"host":"a.example"}"#)
        #expect(paused.members["lanes"] as? Int == 2)
        func pausedLanes() async throws -> [[String: String]] {
            let statistics = try await answer(queue, .GET, "/v1/queue/stats").members
            #expect(statistics["paused"] as? Bool == false)
            return try #require(statistics["paused_lanes"] as? [[String: String]])
        }
        let lanes = try await pausedLanes()
        #expect(lanes == [["host": "a.example", "lane": ""], ["host": "a.example", "lane": "l"]])
        let first = String(decoding: try JSONEncoder().encode(lanes[0]), as: UTF8.self)
        let resumed = try await answer(queue, .POST, "/v1/queue/resume", first)
        #expect(resumed.members["lanes"] as? Int == 1)
        #expect(try await pausedLanes() == [["host": "a.example", "lane": "l"]])
        #expect(try await answer(queue, .POST, "/v1/queue/resume").status == 200)
        #expect(try await pausedLanes().isEmpty)
        await queue.stop()
    }
}

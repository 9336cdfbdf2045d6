internal import ClientCore
internal import Foundation
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The messages that the route for enqueuing accepts and rejects.
@Suite struct EnqueueRouteTests {
    private let directory = try! ScratchDirectory()

    @Test(arguments: [
        (#"{\#(urlMember),"url":"http://127.0.0.1:2/"}"#, "url"),
        (#"{\#(urlMember),"\u0075rl":"http://127.0.0.1:2/"}"#, "url"),
        (#"{\#(urlMember),"idempotency":{"key":"a","key":"b"}}"#, "key"),
        (#"{\#(urlMember),"headers":[["a","{"]],"fifo":true,"fifo":false}"#, "fifo"),
        (#"{\#(urlMember),"staged":{"id":"a","size":1},"staged":null}"#, "staged"),
    ])
    func `a duplicate member is rejected by name, and nothing is stored`(body: String, name: String)
        async throws
    {
        let queue = try await directory.openQueue()
        let refused = try await queue.respond(.POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail == "the member `\(name)` occurs twice", "\(refused.detail)")
        #expect(try await queue.list().requests.isEmpty)
    }

    @Test func `a tag and a webhook are stored, listed and shown`() async throws {
        let queue = try await directory.openQueue()
        try await queue.register(try QueueCredential(.bearer("t"), origins: ["https://b.example"]), as: "c")
        let body = #"""
            {\#(urlMember),"queue":"always","id":"a","tag":"t","on_done":{"url":"https://b.example/","credential":"c"}}
            """#
        #expect(try await queue.respond(.POST, "/v1/requests", body).status == 202)
        let other = #"{\#(urlMember),"queue":"always","id":"b","tag":"u"}"#
        #expect(try await queue.respond(.POST, "/v1/requests", other).status == 202)
        let listed =
            try await queue.respond(.GET, "/v1/requests?tag=t").members["requests"] as? [[String: Any]]
        #expect(listed?.map { $0["id"] as? String } == ["a"] && listed?.first?["tag"] as? String == "t")
        let shown = try await queue.options(of: "a")["on_done"] as? [String: Any]
        #expect(shown?["url"] as? String == "https://b.example/" && shown?["credential"] as? String == "c")
        let webhook = #"{"url":"https://b.example/?code=hush"}"#
        let secret = #"{\#(urlMember),"queue":"always","id":"c","on_done":\#(webhook)}"#
        #expect(try await queue.respond(.POST, "/v1/requests", secret).status == 202)
        let hidden = try await queue.options(of: "c")["on_done"] as? [String: Any]
        #expect(hidden?["url"] as? String == "https://b.example/?code=REDACTED")
        let dropped = try await queue.respond(.POST, "/v1/queue/cancel", #"{"filter":{"tag":"u"}}"#)
        #expect(dropped.members["done"] as? Int == 1)
        let waiting =
            try await queue.respond(.GET, "/v1/queue/stats").members["completions"] as? [[String: Any]]
        #expect(waiting?.map { $0["tag"] as? String } == ["u"])
        #expect(waiting?.map { $0["requests"] as? Int } == [1])
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
        (#""constraints":"interface=,""#, "invalid_option", "the constraint `interface=,` cannot"),
        (#""constraints":"unmetered=""#, "invalid_option", "the constraint `unmetered=` cannot"),
        (#""constraints":"wifi""#, "invalid_option", "the constraint `wifi` cannot"),
        (
            #""constraints":"window=22:00-06:00; window=08:00-09:00""#, "invalid_option",
            "the constraint `window=08:00-09:00` cannot"
        ),
        (
            #""constraints":"\#(String(repeating: "unmetered; ", count: 100))""#, "invalid_option",
            "`constraints` has 1100 bytes; the maximum is 1024"
        ),
        (#""on_done":{"uri":"https://b.example/"}"#, "malformed_body", ""),
        (#""on_done":"https://b.example/""#, "malformed_body", ""),
    ])
    func `an invalid tag, webhook or constraint is rejected, and nothing is stored`(
        member: String,
        code: String,
        detail: String
    )
        async throws
    {
        let queue = try await directory.openQueue()
        let refused = try await queue.respond(.POST, "/v1/requests", "{\(urlMember),\(member)}")
        #expect(refused.status == 400 && refused.code == code, "\(refused.members)")
        #expect(refused.detail.hasPrefix(detail), "\(refused.detail)")
        #expect(try await queue.list().requests.isEmpty)
        await queue.stop()
    }

    @Test(arguments: [
        (#"{\#(urlMember),"idempotency":{"kye":"a"}}"#, "idempotency.kye"),
        (#"{\#(urlMember),"staged":{"id":"a","size":1,"sise":1}}"#, "staged.sise"),
        (#"{\#(urlMember),"ttlSeconds":1}"#, "ttlSeconds"),
    ])
    func `an unknown member is rejected by its path`(
        body: String,
        path: String
    )
        async throws
    {
        let queue = try await directory.openQueue()
        // Reflection finds the member names once per message type. The first message here lacks most members.
        let plain = try await queue.respond(.POST, "/v1/requests", #"{\#(urlMember),"queue":"always"}"#)
        #expect(plain.status == 202, "\(plain.detail)")
        let null = #"{\#(urlMember),"queue":"always","idempotency":null}"#
        #expect(try await queue.respond(.POST, "/v1/requests", null).status == 202)
        let refused = try await queue.respond(.POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail.contains("`\(path)`"), "\(refused.detail)")
    }

    @Test func `the same name in other objects, or as a value, is not a duplicate`() async throws {
        let queue = try await directory.openQueue()
        let body =
            #"{\#(urlMember),"method":"PUT","queue":"always","body":"\"url\",\"url\"","headers":[["url","url"],["url","fifo"]],"#
            + #""lane":"fifo","fifo":true,"idempotency":{"key":"key","header":"X"}}"#
        let taken = try await queue.respond(.POST, "/v1/requests", body)
        #expect(taken.status == 202, "\(taken.detail)")
    }

    @Test(arguments: [
        "connect_timeout_seconds", "response_timeout_seconds", "total_timeout_seconds",
    ])
    func `a timeout is stored and shown, and one out of range is rejected`(member: String) async throws {
        let queue = try await directory.openQueue()
        for seconds in ["0", "-1", "0.0001", "86401", "1e300"] {
            let refused = try await queue.respond(
                .POST,
                "/v1/requests",
                #"{\#(urlMember),"\#(member)":\#(seconds)}"#
            )
            #expect(
                refused.status == 400 && refused.code == "invalid_option",
                "\(seconds): \(refused.detail)"
            )
            #expect(refused.detail.contains("1 ms to 24 hours"), "\(refused.detail)")
        }
        let body = #"{\#(urlMember),"queue":"always","id":"a","\#(member)":2.5}"#
        #expect(try await queue.respond(.POST, "/v1/requests", body).status == 202)
        let details = try await queue.respond(.GET, "/v1/requests/a")
        #expect(details.members[member] as? Double == 2.5)
        let usual: [String: Double] = ["connect_timeout_seconds": 15, "response_timeout_seconds": 300]
        for (name, value) in usual where name != member {
            #expect(details.members[name] as? Double == value)
        }
    }

    @Test func `every documented member is accepted, also as null`() async throws {
        let queue = try await directory.openQueue()
        let all = """
            {\(urlMember),"method":"POST","headers":[["X-A","b"]],"body":"c","queue":"always","id":"a","lane":"l",
            "fifo":false,"priority":1,"ttl_seconds":60,"max_attempts":3,"replace_key":"r","dependencies":[],
            "expect":"status=2xx","at_most_once":false,"durability":"normal","when_full":"reject",
            "idempotency":{"key":"k","header":"X-Key","quoted":true,"none":false},
            "deadline":null,"not_before":null,"body_base64":null,"staged":null,"idempotency_key":null}
            """
        #expect(try await queue.respond(.POST, "/v1/requests", all).status == 202)
        await queue.stop()
    }

    @Test func `a signed URL is accepted only with its option, and not shown`() async throws {
        let queue = try await directory.openQueue()
        let signed = #""url":"http://127.0.0.1:1/?X-Amz-Signature=hush","queue":"always","id":"a""#
        let refused = try await queue.respond(.POST, "/v1/requests", "{\(signed)}")
        #expect(refused.status == 400 && refused.code == "invalid_url")
        let accepted = try await queue.respond(.POST, "/v1/requests", "{\(signed),\"allow_signature\":true}")
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
        let queue = try await directory.openQueue()
        let body = #"{\#(urlMember),"\#(member)":"\#(word)"}"#
        let refused = try await queue.respond(.POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "invalid_option")
        #expect(refused.detail == "`\(member)` is `\(word)`; it must be one of \(accepted)")
        #expect(try await queue.statistics().requests == 0)
        await queue.stop()
    }

    @Test(arguments: [
        (#""http_version":2"#, #"`http_version` is `2`; it must be a string, one of "1.1", "2""#),
        (#""http_version":[1.1]"#, #"`http_version` is an array; it must be a string, one of "1.1", "2""#),
        (#""queue":true"#, #"`queue` is `true`; it must be a string, one of "auto", "always""#),
        (#""durability":1.5"#, #"`durability` is `1.5`; it must be a string, one of "full", "normal""#),
        (#""lane":{}"#, "`lane` is an object; it must be a string"),
        (#""fifo":"yes""#, "`fifo` is a string; it must be true or false"),
        (#""headers":"Authorization: x""#, "`headers` is a string; it must be an array"),
        (#""headers":[["a",null]]"#, "`headers[0][1]` is `null`; it must be a string"),
        (#""idempotency":{"quoted":0}"#, "`idempotency.quoted` is `0`; it must be true or false"),
        (#""constraints":[7]"#, "`constraints` is an array; it must be a string"),
    ])
    func `a value of the wrong type is reported with what is accepted`(
        member: String,
        detail: String
    ) async throws {
        let queue = try await directory.openQueue()
        let refused = try await queue.respond(.POST, "/v1/requests", "{\(urlMember),\(member)}")
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail.contains("JSON: \(detail)"), "\(refused.detail)")
        await queue.stop()
    }

    @Test(arguments: [
        ("[]", "the body is an array; it must be an object"),
        ("3", "the body is `3`; it must be an object"),
        ("{", "it is not valid JSON"), ("{}", "`url` is missing"),
        (#"{"url":3}"#, "`url` is `3`; it must be a string"),
        (#"{"url":"http://a/","ttl_seconds":"x"}"#, "`ttl_seconds` is a string; it must be a number"),
        (#"{"url":"http://a/","max_attempts":"3"}"#, "`max_attempts` is a string; it must be an integer"),
        (#"{"url":"http://a/","at_most_once":1}"#, "`at_most_once` is `1`; it must be true or false"),
        (#"{"url":"http://a/","headers":[["a",1]]}"#, "`headers[0][1]` is `1`; it must be a string"),
        (#"{"url":"http://a/","not_before":"soon"}"#, "`not_before`: `soon` is not an RFC 3339 time"),
        (#"{"url":"http://a/","staged":{"id":"x"}}"#, "`staged.size` is missing"),
        (#"{"url":"http://a/","deadline":"soon"}"#, "`deadline`: `soon` is not an RFC 3339 time"),
        (#"{"url":"http://a/","priority":"x"}"#, "`priority` is a string; it must be an integer"),
        (
            #"{"url":"http://a/","priority":1.5}"#,
            "a number is out of range or not an integer: `priority`"
        ),
        (
            #"{"url":"http://a/","priority":1.5,"ttl_seconds":0.5}"#,
            "or not an integer: one of `priority`, `ttl_seconds`"
        ),
        (
            #"{"url":"http://a/","priority":1.5,"a":1.5,"b":1.5,"c":1.5,"d":1.5}"#,
            "or not an integer: one of `a`, `b`, `c`, `d` and 1 more"
        ),
        (
            #"{"url":"http://a/","staged":{"id":"x","size":1e30}}"#,
            "a number is out of range or not an integer: `staged.size`"
        ),
        (
            #"{"url":"http://a/","idempotency":{"quoted":true},"idempotency_key":"k"}"#,
            "`idempotency` and `idempotency_key` cannot be combined"
        ),
    ])
    func `a body that cannot be decoded is reported in terms of JSON`(body: String, words: String)
        async throws
    {
        let queue = try await directory.openQueue()
        let refused = try await queue.respond(.POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        #expect(refused.detail.contains(words), "\(refused.detail)")
        #expect(try await queue.list().requests.isEmpty)
        await queue.stop()
    }

    @Test(arguments: [
        (#""ttl_seconds":1e300"#, "ttl_seconds"), (#""ttl_seconds":-1"#, "time to live"),
        (#""deadline":"2099-01-01T00:00:00Z""#, "366 days"), (#""max_attempts":0"#, "attempts"),
        (#""body":"a","staged":{"id":"a","size":1}"#, "cannot be combined"),
        (#""idempotency":{"none":true,"key":"a"}"#, "cannot be combined with a key"),
        (#""staged":{"id":"","size":1}"#, "body"),
    ])
    func `options that are out of range or do not fit together are rejected`(member: String, words: String)
        async throws
    {
        let queue = try await directory.openQueue()
        let refused = try await queue.respond(.POST, "/v1/requests", "{\(urlMember),\(member)}")
        #expect(refused.status == 400 && refused.detail.contains(words), "\(refused.members)")
        #expect(try await queue.list().requests.isEmpty)
        await queue.stop()
    }

    @Test func `a state of the wrong type is reported with the states`() async throws {
        let queue = try await directory.openQueue()
        let body = #"{"filter":{"state":[1]}}"#
        let refused = try await queue.respond(.POST, "/v1/queue/cancel", body)
        #expect(refused.status == 400 && refused.code == "malformed_body")
        let detail = #"`filter.state[0]` is `1`; it must be a string, one of "pending","#
        #expect(refused.detail.contains(detail), "\(refused.detail)")
        await queue.stop()
    }

    @Test func `a known id is reported, and gets 422 with other content`() async throws {
        let queue = try await directory.openQueue()
        let message = #"{\#(urlMember),"queue":"always","id":"a","body":"x","method":"POST"}"#
        for (isKnown, mode) in [(nil, "always"), (true, "always"), (true, "auto")] as [(Bool?, String)] {
            let body = message.replacing("always", with: mode)
            let sent = try await queue.respond(.POST, "/v1/requests", body)
            #expect(sent.status == 202 && sent.members["known"] as? Bool == isKnown, "\(sent.members)")
        }
        let other = #"{\#(urlMember),"queue":"always","id":"a","body":"y","method":"PUT"}"#
        let refused = try await queue.respond(.POST, "/v1/requests", other)
        #expect(refused.status == 422 && refused.code == "id_conflict")
        #expect(refused.detail.contains("differs in: method, body;"), "\(refused.detail)")
        await queue.stop()
    }

    @Test(arguments: ["get", "Post", "dELETE", "patch"])
    func `a lowercase method is rejected with its correct spelling`(method: String) async throws {
        let queue = try await directory.openQueue()
        let body = #"{\#(urlMember),"method":"\#(method)"}"#
        let refused = try await queue.respond(.POST, "/v1/requests", body)
        #expect(refused.status == 400 && refused.code == "invalid_method")
        #expect(refused.detail.hasSuffix("use `\(method.uppercased())`"), "\(refused.detail)")
        let own = try await queue.respond(.POST, "/v1/requests", #"{\#(urlMember),"method":"purge"}"#)
        #expect(own.status == 202, "an unknown method is accepted")
        await queue.stop()
    }

    @Test func `the configured defaults apply to requests without their own values`() async throws {
        let queue = try await directory.openQueue()
        let defaults = RequestDefaults()
        func timeouts(_ id: String, _ members: String = "") async throws -> [Double?] {
            let body = #"{\#(urlMember),"queue":"always","id":"\#(id)"\#(members)}"#
            let sent = try await queue.respond(.POST, "/v1/requests", body, defaults: defaults)
            #expect(sent.status == 202, "\(sent.members)")
            let shown = try await queue.respond(.GET, "/v1/requests/\(id)").members
            return ["connect_timeout_seconds", "response_timeout_seconds"].map { shown[$0] as? Double }
        }
        #expect(try await timeouts("first") == [15, 300])
        var options = EnqueueOptions()
        (options.timeouts.connect, options.timeouts.response) = (.seconds(2), .seconds(40))
        defaults.replace(options)
        #expect(try await timeouts("second") == [2, 40])
        #expect(try await timeouts("third", #","response_timeout_seconds":7"#) == [2, 7])
        #expect(try await timeouts("first") == [15, 300], "a stored request keeps its timeouts")
        await queue.stop()
    }

    @Test func `a request can choose the version of HTTP`() async throws {
        let queue = try await directory.openQueue()
        func send(_ id: String, _ members: String, scheme: String = "https") async throws -> RouteResponse {
            let url = "\(scheme)://127.0.0.1:1/"
            let body = #"{"url":"\#(url)","queue":"always","id":"\#(id)"\#(members)}"#
            return try await queue.respond(.POST, "/v1/requests", body)
        }
        for (id, version) in [("a", "1.1"), ("b", "2")] {
            #expect(try await send(id, #","http_version":"\#(version)""#).status == 202)
            let shown = try await queue.options(of: id)
            #expect(shown["http_version"] as? String == version)
        }
        #expect(try await send("c", "").status == 202)
        #expect(try await queue.options(of: "c")["http_version"] == nil)
        let refused = try await send("d", #","http_version":"3""#)
        #expect(refused.status == 400 && refused.code == "invalid_option")
        #expect(refused.detail == "`http_version` is `3`; it must be one of 1.1, 2")
        // Plain http has only HTTP/1.1.
        #expect(try await send("e", #","http_version":"1.1""#, scheme: "http").status == 202)
        let plain = try await send("f", #","http_version":"2""#, scheme: "http")
        #expect(plain.status == 400 && plain.code == "invalid_option")
        #expect(
            plain.detail
                == "the HTTP version is `2`, but the URL begins with `http://`; it must be `1.1`, or the URL https"
        )
        await queue.stop()
    }

    @Test func `a request can choose the statuses after which it is retried or given up`() async throws {
        let queue = try await directory.openQueue()
        func send(_ id: String, _ members: String) async throws -> RouteResponse {
            let body = #"{\#(urlMember),"queue":"always","id":"\#(id)"\#(members)}"#
            return try await queue.respond(.POST, "/v1/requests", body)
        }
        let sent = try await send("a", #","retry_statuses":"404,5xx","dead_statuses":"410""#)
        #expect(sent.status == 202, "\(sent.members)")
        let shown = try await queue.options(of: "a")
        #expect(
            shown["retry_statuses"] as? String == "404,500-599" && shown["dead_statuses"] as? String == "410"
        )
        _ = try await send("b", "")
        let plain = try await queue.options(of: "b")
        #expect(plain["retry_statuses"] == nil && plain["dead_statuses"] == nil)
        for (members, detail) in [
            (#","retry_statuses":"404-""#, "`retry_statuses`: `404-` is not a list of statuses; accepted: "),
            (#","dead_statuses":"""#, "`dead_statuses`: `` is not a list of statuses; accepted: "),
            (
                #","retry_statuses":"4xx","dead_statuses":"404""#,
                "both the retry statuses `400-499` and the dead"
            ),
        ] {
            let refused = try await send("c", members)
            #expect(refused.status == 400 && refused.code == "invalid_option")
            #expect(refused.detail.hasPrefix(detail), "\(refused.detail)")
        }
        await queue.stop()
    }

    @Test func `a message contains only the options that were set`() throws {
        var defaults = EnqueueOptions()
        (defaults.timeToLive, defaults.durability) = (.seconds(60), .normal)
        func received(_ message: ControlMessage.Send) throws -> EnqueueOptions {
            let decoder = ControlMessage.decoder
            decoder.userInfo = [EnqueueOptions.defaults: defaults]
            let data = try ControlMessage.encoder.encode(message)
            return try decoder.decode(ControlMessage.Send.self, from: data).options
        }
        var message = ControlMessage.Send(QueueRequest(method: "GET", url: "http://a.example/"))
        #expect(try received(message) == defaults)
        let empty = String(decoding: try ControlMessage.encoder.encode(message), as: UTF8.self)
        #expect(empty == #"{"method":"GET","queue":"auto","url":"http://a.example/"}"#)
        (message.options.id, message.options.lane, message.options.isFIFO) = ("a", "l", true)
        // The default of the library, but not of this service.
        message.options.timeToLive = EnqueueOptions().timeToLive
        var expected = defaults
        (expected.id, expected.lane, expected.isFIFO) = ("a", "l", true)
        expected.timeToLive = EnqueueOptions().timeToLive
        #expect(try received(message) == expected)
    }

    @Test func `every option survives the way to the service`() throws {
        var options = EnqueueOptions(lane: "l", isFIFO: true, id: "a")
        (options.priority, options.timeToLive) = (3, .milliseconds(1500))
        (options.deadline, options.notBefore) = (
            Date(timeIntervalSince1970: 2e9), Date(timeIntervalSince1970: 1.9e9)
        )
        (options.maximumAttempts, options.timeouts.total, options.httpVersion) = (2, .seconds(9), .http1)
        (options.timeouts.connect, options.timeouts.response) = (.seconds(1), .microseconds(2_000_001))
        options.statusRules = StatusRules(retry: [404...404], dead: [500...599])
        (options.replaceKey, options.dependencies) = ("r", ["x", "y"])
        options.expectation = Expectation(
            statuses: [200...204],
            contentType: "a/b",
            rules: [.header("X", value: ",")]
        )
        (options.isAtMostOnce, options.credential, options.allowsSignature, options.tag) = (
            true, "c", true, "t"
        )
        options.idempotencyKey = .value("k")
        (options.idempotencyKey.headerName, options.idempotencyKey.isQuoted) = ("X-Key", true)
        options.onDone = Webhook(url: "https://b.example/", credential: "d")
        (options.constraints.isUnmetered, options.constraints.interfaceKinds) = (true, [.wifi, .ethernet])
        options.constraints.window = try DailyWindow(parsing: "22:00-06:00 Europe/Berlin")
        (options.durability, options.whenFull) = (.normal, .block)
        let request = QueueRequest(
            method: "PUT",
            url: "https://a.example/",
            headers: [.init(name: "A", value: "b")],
            body: .staged(id: "s", size: 7)
        )
        var message = ControlMessage.Send(request)
        (message.options, message.queue) = (options, .always)
        let received = try ControlMessage.decoder.decode(
            ControlMessage.Send.self,
            from: ControlMessage.encoder.encode(message)
        )
        #expect(received == message)
    }
}

internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The control API's routes, called by a client other than `netwatch`.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ControlAPITests {
    private func fixture(_ count: Int) async throws -> RunningService {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for number in 0..<count { try await service.keep("http://127.0.0.1:1/", "--id", "req-\(number)") }
        return service
    }

    private func code(_ answer: String) throws -> String? {
        try Command.json(answer)["code"] as? String
    }

    @Test func `pages follow each other until the last`() async throws {
        let service = try await fixture(5)
        var (seen, next): ([String], String?) = ([], "")
        while let cursor = next {
            let after = cursor.isEmpty ? "" : "&after=\(cursor)"
            let page = try await Command.json(service.curl("/v1/requests?limit=2\(after)"))
            seen += (page["requests"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
            next = page["next"] as? String
        }
        #expect(seen == (0..<5).map { "req-\($0)" })
        #expect(try await code(service.curl("/v1/requests?after=x9")) == "invalid_after")
        #expect(try await code(service.curl("/v1/requests?state=lost")) == "invalid_state")
        #expect(try await code(service.curl("/v1/requests?limit=0")) == "invalid_limit")
    }

    @Test func `routes accept only complete ids`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for id in ["order-10", "a/b c"] { try await service.keep("http://127.0.0.1:1/", "--id", id) }
        for arguments in ["", " -X DELETE", "/hold -X POST", "/retry -X POST"] {
            let answer = try await service.curl("/v1/requests/order-1\(arguments) -w %{http_code}")
            #expect(answer.contains("unknown_request") && answer.hasSuffix("404"), "\(arguments): \(answer)")
        }
        let edited = try await service.curl(#"/v1/queue/cancel -d '{"ids":["order-1"]}'"#)
        #expect(edited.contains(#""code":"unknown_request""#) && edited.contains(#""done":false"#))
        let dependent = #"{"url":"http://127.0.0.1:1/","dependencies":["order-1"]}"#
        #expect(try await code(service.curl("/v1/requests -d '\(dependent)'")) == "unknown_dependency")
        #expect(try await service.queue().map { $0["state"] as? String } == ["pending", "pending"])
        #expect(try await service.curl("/v1/requests/a%2Fb%20c").contains(#""id":"a/b c""#))
    }

    @Test func `ids are looked up by prefix, an exact match first`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        for id in ["ab-2", "ab", "ab-1", "b"] { try await service.keep("http://127.0.0.1:1/", "--id", id) }
        func ids(_ prefix: String) async throws -> [String]? {
            try await Command.json(service.curl("/v1/ids?prefix=\(prefix)"))["ids"] as? [String]
        }
        #expect(try await ids("ab") == ["ab", "ab-1", "ab-2"])
        #expect(try await ids("ab-") == ["ab-1", "ab-2"])
        #expect(try await ids("c") == [])
        #expect(try await code(service.curl("/v1/ids?prefix=")) == "invalid_prefix")
    }

    @Test func `a request is held, released, retried and dropped`() async throws {
        let service = try await fixture(1)
        for (arguments, state) in [
            ("-X POST", "hold"), ("-X POST", "release"), ("-X POST", "retry"),
        ].map({ ($0.0, $0.1) }) {
            let answer = try await Command.json(service.curl("/v1/requests/req-0/\(state) \(arguments)"))
            #expect(
                answer["done"] as? Bool == true
                    && answer["state"] as? String == (state == "hold" ? "held" : "pending")
            )
        }
        #expect(
            try await Command.json(service.curl("/v1/requests/req-0 -X DELETE"))["state"] as? String
                == "cancelled"
        )
        let refused = try await service.curl("/v1/requests/req-0/hold -X POST -w %{http_code}")
        #expect(refused.contains(#""code":"refused""#) && refused.hasSuffix("409"))
    }

    @Test func `a GET with wait responds when the request is finished, or after the timeout`() async throws {
        let service = try await fixture(1)
        let early = try await Command.json(service.curl("/v1/requests/req-0?wait=0.05"))
        #expect((early["request"] as? [String: Any])?["state"] as? String == "pending")
        let waiting = try Subprocess(
            "/usr/bin/curl",
            ["-sS", "--unix-socket", service.socket, "http://netwatch/v1/requests/req-0?wait=300"]
        )
        _ = try await service.curl("/v1/requests/req-0 -X DELETE")
        let answer = try Command.json(try #require(try await waiting.outcome().output.first))
        #expect((answer["request"] as? [String: Any])?["state"] as? String == "cancelled")
        for wait in ["301", "-1", "nan", "inf", "x"] {
            #expect(try await code(service.curl("/v1/requests/req-0?wait=\(wait)")) == "invalid_wait")
        }
    }

    @Test func `a body is uploaded in pieces, and a wrong offset gets the correct one in return`()
        async throws
    {
        let server = try ScriptedServer()
        let service = try await RunningService(in: try ScratchDirectory())
        let patch = "-X PATCH --data-binary"
        #expect(try await service.curl("/v1/bodies/b1?offset=0 \(patch) hello").contains(#""size":5"#))
        let wrong = try await Command.json(service.curl("/v1/bodies/b1?offset=3 \(patch) xx"))
        #expect(
            wrong["code"] as? String == "wrong_offset" && wrong["offset"] as? Int == 5
                && wrong["status"] as? Int == 409
        )
        #expect(try await service.curl("/v1/bodies/b1?offset=5 \(patch) -world").contains(#""size":11"#))
        #expect(try await code(service.curl("/v1/bodies/none?offset=5 \(patch) x")) == "unknown_staged_body")
        #expect(try await code(service.curl("/v1/bodies/b1 \(patch) x")) == "invalid_offset")
        let short = #"{"url":"\#(server.url)","method":"PUT","staged":{"id":"b1","size":10}}"#
        #expect(try await code(service.curl("/v1/requests -d '\(short)'")) == "wrong_offset")
        let whole = #"{"url":"\#(server.url)","method":"PUT","staged":{"id":"b1","size":11}}"#
        #expect(try await service.curl("/v1/requests -d '\(whole)'").contains("delivered"))
        #expect(server.requests.first?.body == Array("hello-world".utf8))
        #expect(try await code(service.curl("/v1/requests -d '\(whole)'")) == "unknown_staged_body")
    }

    @Test func `the service is ready until it stops`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let head = "GET /readyz HTTP/1.1\r\nHost: x\r\n"
        let client = try RawClient(service.socket)
        #expect(try client.request("\(head)\r\n").status == 200)
        // The service has read this beginning of a request when it responds, so it waits for the rest.
        let length = 40_000
        let begun = try client.request("\(head)Content-Length: \(length)\r\nExpect: 100-continue\r\n\r\n")
        #expect(begun.status == 100)
        service.process.signal(SIGTERM)
        try await service.hasLogged("stopping")
        let response = try client.request(String(repeating: "x", count: length))
        #expect(response.status == 503 && response.body.contains(#""code":"not_ready""#), "\(response)")
        #expect(try await service.process.end() == .exited(0))
    }

    @Test func `a piece has at most 1 MiB`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        try shell("head -c 1048577 /dev/zero >\(directory.file("piece"))")
        let answer = try await service.curl(
            "/v1/bodies/b?offset=0 -X PATCH --data-binary @\(directory.file("piece"))"
        )
        #expect(try code(answer) == "body_too_large")
    }

    @Test func `a message accepts all options of the queue`() async throws {
        let server = try ScriptedServer()
        let service = try await RunningService(in: try ScratchDirectory())
        let message = """
            {"url":"\(server.url)","method":"POST","queue":"auto","ttl_seconds":3600,"max_attempts":3,
             "deadline":"2099-01-01T00:00:00Z","idempotency":{"key":"k","header":"X-Key","quoted":true},
             "durability":"normal","when_full":"drop-oldest","expect":"status=200","at_most_once":true}
            """
        let soon = Date(timeIntervalSinceNow: 3600).ISO8601Format()
        let taken = message.replacing("2099-01-01T00:00:00Z", with: soon)
        #expect(try await service.curl("/v1/requests -d '\(taken)'").contains("delivered"))
        #expect(server.requests.first?.values(of: "X-Key") == [#""k""#])
        #expect(server.requests.count == 1)
    }

    @Test func `a message accepts at most ten thousand ids`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        let ids = (0...10_000).map { "\"x\($0)\"" }.joined(separator: ",")
        let file = directory.file("message")
        try Data("{\"ids\":[\(ids)]}".utf8).write(to: URL(fileURLWithPath: file))
        #expect(try await code(service.curl("/v1/queue/cancel -d @\(file)")) == "malformed_body")
        #expect(try await service.curl("/v1/queue/cancel -d '{\"ids\":[]}'").contains(#""results":[]"#))
    }
}

internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Error responses of the control API to invalid messages.
@Suite(.timeLimit(.minutes(5))) struct ControlMessageTests {
    @Test func `decoding errors use JSON terms and paths`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        for (message, words) in [
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
        ] {
            let answer = try await Command.json(service.curl("/v1/requests -d '\(message)'"))
            #expect(answer["code"] as? String == "malformed_body" && answer["status"] as? Int == 400)
            #expect((answer["detail"] as? String)?.contains(words) == true, "\(message): \(answer)")
        }
        #expect(try await service.queue().isEmpty)
    }

    @Test func `a repeated query name is rejected if it accepts one value`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let twice = try await Command.json(service.curl("/v1/requests?limit=1&limit=2"))
        #expect(twice["code"] as? String == "repeated_parameter" && twice["status"] as? Int == 400)
        #expect(twice["detail"] as? String == "`limit` occurs twice; it accepts one value")
        #expect(try await service.curl("/v1/requests?state=held&state=dead").contains(#""requests":[]"#))
    }

    @Test func `a filter's host is validated`() async throws {
        let queue = try await QueueFixture(.service, count: 1)
        for arguments in [
            ["list"], ["dead"], ["pause"], ["resume"], ["drop", "--all", "--yes"],
            ["hold", "--all", "--yes"],
        ] {
            let outcome = try await Command.start(
                ["queue"] + arguments + [
                    "--host", "http://127.0.0.1:1/", "--socket", queue.directory.file("socket"),
                ]
            ).outcome()
            #expect(outcome.ending == .exited(64), "\(arguments)")
            #expect(
                outcome.errors.first
                    == "error: `--host`: `http://127.0.0.1:1/` is not a host name or an address, like api.example.com, "
                    + "without scheme and port"
            )
        }
        let flush = try await Command.run("queue", "flush", "--host", "bücher.example")
        #expect(flush.errors.first?.hasSuffix("must be written as `xn--bcher-kva.example`") == true)
        let words = "`host` is `a b`; it must be a host name or an address"
        #expect(try await queue.service?.curl("/v1/requests?host=a%20b").contains(words) == true)
        #expect(try await queue.states() == ["req-0": "pending"])
        #expect(try await queue.run("list", "--host", "[::1]").ending == .exited(0))
    }

    /// The error codes of the responses in docs/openapi.json.
    private static func codesOfResponses() throws -> Set<String> {
        let data = try Data(Repository.text("docs/openapi.json").utf8)
        let document = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        let components = document?["components"] as? [String: Any]
        let responses = try #require(components?["responses"] as? [String: [String: Any]])
        var codes: Set<String> = []
        for response in responses.values {
            let content = response["content"] as? [String: [String: Any]]
            let schema = content?["application/problem+json"]?["schema"] as? [String: Any]
            let properties = schema?["properties"] as? [String: [String: Any]]
            codes.formUnion(properties?["code"]?["enum"] as? [String] ?? [])
        }
        return codes
    }

    /// Every error code in the sources must be documented.
    @Test func `the documentation lists every error code`() throws {
        let documented = try Self.codesOfResponses()
        var codes: Set<String> = []
        for path in try Repository.swiftFiles(in: "Sources/NetwatchService") {
            codes.formUnion(try Repository.text(path).matches(of: /code: "([a-z_]+)"/).map { String($0.1) })
        }
        #expect(codes.count > 10)
        #expect(codes.subtracting(documented) == [])
    }
}

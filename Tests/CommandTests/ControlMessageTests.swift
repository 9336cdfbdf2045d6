internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Error responses of the control API to invalid messages.
@Suite(.timeLimit(.minutes(5))) struct ControlMessageTests {
    @Test func `a filter's host is validated`() async throws {
        let queue = try await QueueFixture(.service, count: 1)
        for arguments in [
            ["list"], ["dead"], ["pause"], ["resume"], ["cancel", "--all", "--yes"],
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

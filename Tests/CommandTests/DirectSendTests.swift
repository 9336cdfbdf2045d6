internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// `netwatch send --queue never`, which uses no service and stores nothing.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DirectSendTests {
    private func send(_ arguments: String..., input: String? = nil) async throws -> Subprocess.Outcome {
        let descriptor = input.map { open($0, O_RDONLY | O_CLOEXEC) }
        defer { if let descriptor { close(descriptor) } }
        return try await Command.start(
            ["send", "--queue", "never"] + arguments,
            environment: ["NETWATCH_SOCKET": "/no/such/socket"],
            input: descriptor
        ).outcome()
    }

    @Test func `a direct request can carry secrets`() async throws {
        let server = try ScriptedServer()
        let sent = try await send(
            server.url,
            "-d",
            "x",
            "-H",
            "Authorization: Bearer y",
            "--idempotency-key",
            "k"
        )
        #expect(sent.ending == .exited(0) && sent.output.isEmpty && sent.errors == ["delivered: HTTP 200"])
        let request = try #require(server.requests.first)
        #expect(request.method == "POST" && request.body == Array("x".utf8))
        #expect(request.values(of: "Authorization") == ["Bearer y"])
        #expect(request.values(of: "Idempotency-Key") == ["k"])
    }

    @Test func `the URL of a direct request can contain a user name and a password`() async throws {
        let server = try ScriptedServer()
        let sent = try await send(server.url.replacing("http://", with: "http://user:password@"), "-d", "x")
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        #expect(server.requests.count == 1)
    }

    @Test func `an error does not print the secrets of the URL`() async throws {
        let sent = try await send("http://user:hush@127.0.0.1:1/?token=hush", "-d", "x")
        #expect(sent.ending == .exited(2))
        let error = try #require(sent.errors.first)
        let url = "`http://127.0.0.1:1/?token=REDACTED`"
        #expect(error.contains(url) && !error.contains("hush"), "\(sent.errors)")
    }

    @Test func `HTTP/2 is refused for a plain http URL, with and without the queue`() async throws {
        let server = try ScriptedServer()
        let message =
            "error: the HTTP version is `2`, but the URL begins with `http://`; it must be `1.1`, or the URL https"
        for queue in ["never", "auto"] {
            let sent = try await send(server.url, "--http-version", "2", "--queue", queue)
            #expect(sent.ending == .exited(64) && sent.errors.first == message, "\(sent.errors)")
        }
        #expect(server.requests.isEmpty)
        #expect(try await send(server.url, "--http-version", "1.1").ending == .exited(0))
    }

    @Test func `the exit status of a direct request depends on the response`() async throws {
        let server = try ScriptedServer {
            .respond(status: Int($0.target.dropFirst())!, headers: [], body: [])
        }
        #expect(try await send(server.url + "/404").ending == .exited(1))
        #expect(try await send(server.url + "/404", "--check-status").ending == .exited(4))
        #expect(try await send(server.url + "/302", "--check-status").ending == .exited(3))
        #expect(try await send(server.url + "/503").ending == .exited(1))
        #expect(try await send(server.url + "/404", "--expect", "status=404").ending == .exited(0))
        #expect(server.requests.count == 5, "nothing is sent again")
    }

    @Test func `a direct request without a response exits with 2`() async throws {
        let server = try ScriptedServer { _ in .close }
        let sent = try await send(server.url)
        #expect(sent.ending == .exited(2))
        #expect(sent.errors.first?.contains("could not send to `\(server.url)`") == true, "\(sent.errors)")
        #expect(server.requests.count == 1)
    }

    @Test func `a direct request whose response is cut off exits with 2`() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
        let server = try ScriptedServer { _ in .send(Array("\(head)0123456789".utf8), then: .close) }
        let sent = try await send(server.url)
        #expect(sent.ending == .exited(2))
        #expect(sent.errors.first?.contains("could not send to `\(server.url)`") == true, "\(sent.errors)")
    }

    @Test func `a direct request with a long response is delivered`() async throws {
        let server = try ScriptedServer { _ in .respond(String(repeating: "x", count: 100_000)) }
        let sent = try await send(server.url)
        #expect(sent.ending == .exited(0) && sent.errors == ["delivered: HTTP 200"], "\(sent.errors)")
    }

    @Test(arguments: ["FILE", "-"])
    func `a direct request sends a large body unchanged`(source: String) async throws {
        let server = try ScriptedServer()
        let directory = try ScratchDirectory()
        try shell("head -c 3145745 /dev/zero >\(directory.file("body"))")
        let file = directory.file("body")
        let sent = try await send(server.url, "-T", source == "-" ? "-" : file, input: file)
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data(server.requests[0].body))
    }

    @Test(arguments: [
        ("header=X-Box", "the response does not meet the rule `header=X-Box`"),
        ("status=200,body=OK", "the response does not meet the rule `body=OK`"),
        ("status=201", "expected status=201"),
        ("type=text/plain", "the content type is missing, expected `text/plain`"),
    ])
    func `a direct request names the expectation that the response does not meet`(
        text: String,
        reason: String
    ) async throws {
        let server = try ScriptedServer { _ in .respond("<html>") }
        let sent = try await Command.run("send", server.url, "--queue", "never", "--expect", text)
        #expect(sent.ending == .exited(1))
        #expect(sent.errors == ["not delivered: HTTP 200, \(reason)"])
    }
}

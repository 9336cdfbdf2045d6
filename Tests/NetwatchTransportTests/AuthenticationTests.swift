internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Requests to servers that ask for credentials.
@Suite(.timeLimit(.minutes(5))) struct AuthenticationTests {
    private static let basic = ScriptedServer.Header("WWW-Authenticate", "Basic realm=\"netwatch\"")
    private static let digest = ScriptedServer.Header(
        "WWW-Authenticate",
        "Digest realm=\"netwatch\", nonce=\"0123456789\", qop=\"auth\""
    )
    /// The `Authorization` field for `user:password`.
    private static let authorization = "Basic dXNlcjpwYXNzd29yZA=="

    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    /// Returns a server that responds with a 401 and a body until a request has an `Authorization` field.
    private func server(_ challenges: ScriptedServer.Header..., wanting wanted: String? = nil) throws
        -> ScriptedServer
    {
        try ScriptedServer { request in
            let given = request.values(of: "Authorization").first
            if let given, wanted == nil || wanted == given {
                return .respond(status: 200, headers: [.init("X-Final", "1")], body: Array("welcome".utf8))
            }
            return .respond(status: 401, headers: challenges, body: Array("who are you?".utf8))
        }
    }

    private func request(
        _ server: ScriptedServer,
        method: String = "GET",
        body: TransferBody? = nil,
        schemes: TransferCredentials.Schemes = .all
    ) -> TransferRequest {
        TransferRequest(server, method: method, body: body) {
            $0.credentials = TransferCredentials(user: "user", password: "password", schemes: schemes)
        }
    }

    // MARK: Heads

    @Test(arguments: [.all, .basic] as [TransferCredentials.Schemes])
    func `credentials answer a challenge, and one head is reported`(
        schemes: TransferCredentials.Schemes
    ) async throws {
        let server = try server(Self.basic, wanting: Self.authorization)
        let record = await engine.run(request(server, schemes: schemes))
        #expect(record.hasSucceeded)
        #expect(record.heads.map(\.status) == [200])
        #expect(record.head?.headers == [.init("X-Final", "1"), .init("Content-Length", "7")])
        #expect(record.text == "welcome")
        #expect(server.requests.map { $0.values(of: "Authorization") } == [[], [Self.authorization]])
    }

    @Test func `without credentials a 401 is an ordinary response`() async throws {
        let server = try server(Self.basic)
        var request = request(server)
        request.credentials = nil
        let record = await engine.run(request)
        #expect(record.hasSucceeded)
        #expect(record.heads.map(\.status) == [401])
        #expect(record.text == "who are you?")
        #expect(server.requests.count == 1)
    }

    @Test func `a wrong password returns the second 401 with its body`() async throws {
        let server = try server(Self.basic, wanting: "something else")
        let record = await engine.run(request(server))
        #expect(record.hasSucceeded)
        #expect(record.heads.map(\.status) == [401])
        #expect(record.text == "who are you?")
        #expect(server.requests.count == 2)
    }

    @Test func `a 401 with an unknown scheme, or without a body, is returned`() async throws {
        let unknown = try server(.init("WWW-Authenticate", "Unheard-Of"))
        #expect(await engine.run(request(unknown)).text == "who are you?")
        let empty = try ScriptedServer { _ in .respond(status: 401) }
        let record = await engine.run(request(empty))
        #expect(record.hasSucceeded)
        #expect(record.progress.last?.toReceive == 0)
        #expect(record.heads.map(\.status) == [401])
    }

    @Test func `trailers of the 401 are not part of the final head`() async throws {
        let server = try ScriptedServer { request in
            guard request.values(of: "Authorization").isEmpty else { return .respond("welcome") }
            return .send(
                "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n",
                then: .keep
            )
        }
        let record = await engine.run(request(server))
        #expect(record.heads.map(\.status) == [200])
        #expect(record.head?.headers == [.init("Content-Length", "7")])
        #expect(record.text == "welcome")
    }

    @Test func `a success before the body was sent is not reported`() async throws {
        // The server simulates one that has forgotten the NTLM state after its challenge. libcurl sends the second
        // request without the body, and gets a 200.
        let server = try ScriptedServer { request in
            request.number == 1
                ? .respond(status: 401, headers: [.init("WWW-Authenticate", "NTLM")])
                : .respond(request.body.isEmpty ? "empty" : "whole")
        }
        let record = await engine.run(request(server, method: "POST", body: [1, 2, 3]))
        #expect(record.heads.map(\.status) == [200])
        #expect(record.text == "whole")
        #expect(server.requests.map(\.body) == [[1, 2, 3], [], [1, 2, 3]])
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "needs openssl"))
    func `a server that requires HTTP/1.1 gets the request over it once`() async throws {
        let server = try HostileHTTP2Server("http-1.1-challenge")
        var request = TransferRequest(url: server.url)
        request.allowsConnectionReuse = false
        request.credentials = TransferCredentials(user: "user", password: "password", schemes: .basic)
        (request.trust.anchors, request.trust.checksHost) = (nil, false)
        let record = await engine.run(request)
        #expect(record.failure?.phase == .response, "must not be sent again after the challenge: \(record)")
    }

    // MARK: Bodies

    @Test(arguments: ["Basic", "Digest"])
    func `the body is sent again`(scheme: String) async throws {
        let server = try server(scheme == "Basic" ? Self.basic : Self.digest)
        for body in [
            TransferBody.bytes([1, 2, 3]), .source(SteppedSource(length: nil, [.bytes([1, 2, 3]), .end])),
        ] {
            let record = await engine.run(request(server, method: "POST", body: body))
            #expect(record.heads.map(\.status) == [200])
        }
        #expect(server.requests.map(\.body) == Array(repeating: [1, 2, 3], count: 4))
        let answers = server.requests.compactMap { $0.values(of: "Authorization").first }
        #expect(answers.count == 2)
        #expect(answers.allSatisfy { $0.hasPrefix(scheme) })
    }

    @Test func `a body that cannot rewind fails with code 65 and without a head`() async throws {
        let server = try server(Self.basic)
        let source = SteppedSource(length: 3, [.bytes([1, 2, 3]), .end], isRewindable: false)
        let record = await engine.run(request(server, method: "POST", body: .source(source)))
        #expect(record.failure?.code == 65)
        #expect(record.heads.isEmpty)
        #expect(server.requests.count == 1)
    }

    @Test func `a request that must not be resent is not resent with credentials`() async throws {
        let server = try ScriptedServer { request in
            request.number == 1 ? .respond(status: 401, headers: [Self.basic]) : .close
        }
        var request = request(server, method: "POST", body: [1, 2, 3])
        request.allowsConnectionReuse = false
        let failure = await engine.run(request).failure
        #expect(failure?.code == 52)
        #expect(failure?.phase == .response)
        #expect(server.requests.count == 2)
    }

    @Test func `progress restarts when the request is sent again`() async throws {
        let server = try server(Self.basic)
        let record = await engine.run(request(server, method: "POST", body: [1, 2, 3]))
        #expect(record.progress.last == TransferProgress(sent: 3, toSend: 3, received: 7, toReceive: 7))
        #expect(record.progress.allSatisfy { [nil, 7].contains($0.toReceive) })
    }

    // MARK: Other transfers

    @Test func `the next transfer on the connection is not authenticated`() async throws {
        let server = try server(Self.basic)
        _ = await engine.run(request(server))
        #expect(await engine.run(TransferRequest(url: server.url)).head?.status == 401)
        #expect(server.requests.map(\.connection) == [1, 1, 1])
    }

    @Test(arguments: [("a\0b", "c"), ("a", "b\0c")])
    func `credentials with NUL are rejected`(user: String, password: String) async throws {
        let server = try server(Self.basic)
        var request = request(server)
        request.credentials = TransferCredentials(user: user, password: password)
        #expect(await engine.run(request).failure?.code == 43)
        #expect(server.connectionCount == 0)
    }

    @Test func `credentials without a scheme are rejected`() async throws {
        let server = try server(Self.basic)
        #expect(await engine.run(request(server, schemes: [])).failure?.phase == .prepare)
    }

    // MARK: Third-party servers

    @Test func `httpbin accepts Basic and Digest, and rejects a wrong password`() async throws {
        let server = try HTTPBin()
        let paths = ["basic-auth/user/p", "digest-auth/auth/user/p", "digest-auth/auth-int/user/p/SHA-256"]
        for path in paths {
            for (password, status) in [("p", 200), ("q", 401)] {
                var request = TransferRequest(url: "\(server.url)/\(path)")
                request.credentials = TransferCredentials(user: "user", password: password)
                let record = await engine.run(request)
                #expect(record.heads.map(\.status) == [status], "\(path)")
                #expect(record.hasSucceeded)
            }
        }
    }

    @Test func `nginx serves a file only with valid credentials`() async throws {
        let origin = try ScriptedServer()
        let nginx = try await Nginx(inFrontOf: origin, users: ["user": "p"])
        let scratch = try ScratchDirectory()
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let path = try scratch.write(bytes, to: "body")
        for (password, status) in [("q", 401), ("p", 200)] {
            var request = TransferRequest(url: "http://netwatch/", method: "POST")
            request.unixSocketPath = nginx.socket
            request.body = .source(try BufferedBodySource(path: path))
            request.credentials = TransferCredentials(user: "user", password: password)
            let record = await engine.run(request)
            #expect(record.hasSucceeded)
            #expect(record.heads.map(\.status) == [status])
        }
        #expect(origin.requests.map(\.body) == [bytes])
    }
}

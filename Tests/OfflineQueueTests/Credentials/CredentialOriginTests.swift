internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import OfflineQueue

/// A credential is sent only to the origins that it lists, whatever changes the request or its connection.
@Suite(.timeLimit(.minutes(5))) struct CredentialOriginTests {
    private let directory = TemporaryDirectory(marker: "credential")

    private func send(_ id: String, to url: String, _ queue: OfflineQueue) async throws -> SendResult {
        // A separate lane, because a lane closes if its server is not trusted.
        var options = EnqueueOptions(lane: id, id: id)
        options.credential = "token"
        return try await queue.send(QueueRequest(method: "POST", url: url), options: options)
    }

    // MARK: The forms of a URL

    /// URLs, and whether they lead to `https://api.example.com`.
    static let forms = [
        ("https://api.example.com/", true),
        ("HTTPS://API.Example.COM:443/", true),
        ("https://%61pi.example.com/", true),
        ("https://user@api.example.com/", true),
        ("https://api.example.com@evil.example/", false),
        ("https://api.example.com:443@evil.example/", false),
        ("https://api.example.com%2f@evil.example/", false),
        ("https://evil.example/@api.example.com/", false),
        ("https://evil.example#@api.example.com/", false),
        // libcurl takes the text before `@` for a user name, and ignores a third slash.
        ("https://evil.example\\@api.example.com/", true),
        ("https:///api.example.com/", true),
        ("https://api.example.com\\.evil.example/", false),
        ("https://api.example.com%00.evil.example/", false),
        ("https://api.example.com./", false),
        ("https://api.example.com:444/", false),
        ("http://api.example.com:443/", false),
        ("https://api.example.com.evil.example/", false),
        ("https://xapi.example.com/", false),
        ("https://[::1]/", false),
    ]

    @Test(arguments: forms)
    func `the URL is read as the client reads it`(url: String, isPermitted: Bool) throws {
        let pattern = try OriginPattern("https://api.example.com")
        let origin = try? TransferOrigin(url: url)
        #expect((origin.map(pattern.matches) ?? false) == isPermitted)
    }

    @Test(arguments: [
        ("http://[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080/", true),
        ("http://[0:0::1]", "http://[::1]:80/", true),
        ("http://[::1]", "http://[::2]/", false),
        ("http://[::ffff:127.0.0.1]", "http://127.0.0.1/", false),
        ("http://[fe80::1]", "http://[fe80::1%25lo]/", false),
        ("http://127.0.0.1", "http://127.1/", true),
        ("http://127.0.0.1", "http://0x7f000001/", true),
        ("http://127.0.0.1", "http://127.0.0.1.example/", false),
    ])
    func `different spellings of an address are one origin`(pattern: String, url: String, isPermitted: Bool)
        throws
    {
        #expect(try OriginPattern(pattern).matches(TransferOrigin(url: url)) == isPermitted)
    }

    // MARK: Adapters

    @Test func `the session's own adapter cannot send a credential to another origin`() async throws {
        let other = try ScriptedServer { _ in .respond("stolen") }
        let server = try ScriptedServer { _ in .respond("thanks") }
        let session = SessionManager()
        let (here, elsewhere) = (server.url, other.url)
        session.adapter = TestAdapter { request in
            guard let url = request.url?.absoluteString, url.hasSuffix("/away") else { return }
            request.url = URL(string: url.replacingOccurrences(of: here, with: elsewhere))
        }
        let queue = try await directory.openQueue(SessionSender(session: session))
        let credential = try QueueCredential(.bearer("origin-secret"), origins: [server.url])
        try await queue.register(credential, as: "token")
        guard case .queued(_, .held(.auth)) = try await send("a", to: server.url + "/away", queue) else {
            Issue.record("not held: \(try await queue.request("a") as Any)")
            return
        }
        let reason = try #require(try await queue.request("a")?.summary.lastError)
        let words = "the credential `token` must not be sent to `\(other.url)`; accepted: \(server.url)"
        #expect(reason == words)
        guard case .delivered = try await send("b", to: server.url + "/here", queue) else {
            Issue.record("not delivered: \(try await queue.request("b") as Any)")
            return
        }
        // Without a credential, the adapter's choice counts.
        let plain = QueueRequest(method: "POST", url: server.url + "/away")
        guard case .delivered = try await queue.send(plain) else {
            Issue.record("the adapter's choice does not count")
            return
        }
        #expect(other.requests.count == 1 && other.requests[0].values(of: "Authorization").isEmpty)
        #expect(server.requests.map { $0.values(of: "Authorization") } == [["Bearer origin-secret"]])
        await queue.stop()
    }

    // MARK: Names that lead to another server

    @Test(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"))
    func `a listed name whose address belongs to another server gets nothing`() async throws {
        let server = try await ImpersonatedServer()
        let queue = try await directory.openQueue(SessionSender(session: try server.session()))
        let origin = server.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        let credential = try QueueCredential(.bearer("rebound-secret"), origins: [origin])
        try await queue.register(credential, as: "token")
        for impostor in [ImpersonatedServer.Identity.selfSigned, .anotherServer] {
            try server.present(impostor)
            let result = try await send("\(impostor)", to: origin + "/", queue)
            guard case .queued(_, .held(.trust)) = result else {
                Issue.record("\(impostor): \(result)")
                return
            }
        }
        #expect(try server.credentials.isEmpty)
        try server.present(.itself)
        try await queue.flush()
        for impostor in [ImpersonatedServer.Identity.selfSigned, .anotherServer] {
            _ = try await queue.result(of: "\(impostor)")
        }
        try await server.hasLogged(["Bearer rebound-secret", "Bearer rebound-secret"])
        await queue.stop()
    }
}

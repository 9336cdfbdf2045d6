internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Client certificates as credentials of single requests.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct ClientCertificateCredentialTests {
    private let directory = TemporaryDirectory(marker: "credential")
    private let authority = try! TestAuthority.shared()

    /// Opens a queue whose session trusts the authority.
    private func open() async throws -> OfflineQueue {
        let root = try Certificate(contentsOf: URL(fileURLWithPath: authority.root))
        let pins = ServerTrustPolicy.pinCertificates(
            certificates: [root],
            validateCertificateChain: true,
            validateHost: true
        )
        let manager = ServerTrustPolicyManager(policies: ["127.0.0.1": pins])
        let session = SessionManager(serverTrustPolicyManager: manager)
        return try await directory.openQueue(SessionSender(session: session))
    }

    private func register(
        _ name: String,
        by authority: TestAuthority,
        for url: String,
        in queue: OfflineQueue
    )
        async throws
    {
        let issued = try authority.client(name)
        let identity = try ClientIdentity(
            certificatesAt: URL(fileURLWithPath: issued.chain),
            privateKeyAt: URL(fileURLWithPath: issued.key)
        )
        let credential = try QueueCredential(.clientCertificate(identity), origins: [url])
        try await queue.register(credential, as: name)
    }

    private func send(_ number: Int, _ credential: String?, to url: String, _ queue: OfflineQueue)
        async throws
        -> SendResult
    {
        var options = EnqueueOptions(id: "\(number)")
        options.credential = credential
        return try await queue.send(QueueRequest(method: "PUT", url: url + "/\(number)"), options: options)
    }

    @Test func `a certificate is used for the requests of its credential, and on no connection of others`()
        async throws
    {
        let issued = try authority.server("certificate.queue", for: "IP:127.0.0.1")
        let scratch = try ScratchDirectory()
        let log = scratch.file("clients")
        let nginx = try await Nginx(in: scratch) { port in
            """
            log_format client "$ssl_client_s_dn";
            server {
                listen 127.0.0.1:\(port) ssl; keepalive_timeout 60;
                ssl_certificate \(issued.chain); ssl_certificate_key \(issued.key);
                ssl_client_certificate \(authority.root); ssl_verify_client optional; ssl_verify_depth 3;
                access_log "\(log)" client;
                location / { return 200; }
            }
            """
        }
        let url = nginx.url.replacingOccurrences(of: "http://", with: "https://")
        let queue = try await open()
        for name in ["me", "you"] { try await register(name, by: authority, for: url, in: queue) }
        let order = ["me", nil, "you", "me", nil, "you"]
        for (number, name) in order.enumerated() {
            let result = try await send(number, name, to: url, queue)
            guard case .delivered = result else {
                Issue.record("\(number): \(result)")
                return
            }
        }
        let expected = order.map { $0.map { "CN=\($0)" } ?? "-" }
        try await until(changesIn: scratch.path) {
            let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(
                String.init
            )
            return lines == expected
        }
        await queue.stop()
    }

    @Test func `a certificate that the server refuses holds only its request`() async throws {
        let issued = try authority.server("refusing.queue", for: "IP:127.0.0.1")
        let program = try Subprocess(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:0", "-www", "-tls1_3", "-Verify", "3",
                "-verify_return_error",
                "-CAfile", authority.root, "-key", issued.key, "-cert", issued.certificate, "-cert_chain",
                authority.intermediate,
            ]
        )
        defer { program.signal(SIGKILL) }
        try await program.output.wait { $0.contains { $0.hasPrefix("ACCEPT ") } }
        let line = try #require(program.output.values.first { $0.hasPrefix("ACCEPT ") })
        let url = "https://127.0.0.1:\(try #require(line.split(separator: ":").last))"
        let queue = try await open()
        try await register("stranger", by: TestAuthority(), for: url, in: queue)
        let result = try await send(0, "stranger", to: url, queue)
        guard case .queued(_, .held(.auth)) = result else {
            Issue.record("not held: \(result)")
            return
        }
        let reason = try #require(try await queue.request("0")?.summary.lastError)
        #expect(
            reason.contains("did not accept the client certificate of the credential `stranger`"),
            "\(reason)"
        )
        #expect(try await queue.statistics().closedLanes.isEmpty)
        await queue.stop()
    }

    @Test func `a certificate is not used over plain http`() async throws {
        let server = try ScriptedServer { _ in .respond("") }
        let queue = try await open()
        try await register("plain", by: authority, for: server.url, in: queue)
        let result = try await send(0, "plain", to: server.url, queue)
        guard case .queued(_, .held(.auth)) = result else {
            Issue.record("not held: \(result)")
            return
        }
        #expect(server.requests.isEmpty)
        await queue.stop()
    }
}

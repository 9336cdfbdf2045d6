internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// Transfers over TLS with nginx: HTTP/2, and how trust decides about sharing connections.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct TrustedTransferTests {
    private let authority: TestAuthority
    private let engine: TransferEngine
    private let pool: TransferPool

    init() throws {
        authority = try TestAuthority.shared()
        engine = try TransferEngine(resolver: .answering("127.0.0.1"))
        pool = TransferPool(engine: engine)
    }

    /// Starts nginx with a certificate for a name.
    ///
    /// - Parameter answer: The nginx directive that handles a request. Default: returns the number of the connection.
    private func nginx(
        _ protocols: String = "http2",
        name: String,
        answer: String = "return 200 $connection;"
    ) async throws -> Nginx {
        let issued = try authority.server(name)
        return try await Nginx(in: try ScratchDirectory()) { port in
            """
            keepalive_requests 100000; http2_max_concurrent_streams 200;
            server {
                listen 127.0.0.1:\(port) ssl \(protocols); server_name \(name);
                ssl_certificate \(issued.chain); ssl_certificate_key \(issued.key);
                location / { \(answer) }
            }
            """
        }
    }

    private func request(_ nginx: Nginx, _ name: String, _ trust: TransferTrust? = nil) throws
        -> TransferRequest
    {
        var request = TransferRequest(url: nginx.url.replacing("http://127.0.0.1", with: "https://\(name)"))
        request.trust = try trust ?? ours()
        return request
    }

    /// A trust whose only anchor is the test authority's root.
    private func ours(_ check: TrustCheck? = nil) throws -> TransferTrust {
        var trust = TransferTrust()
        trust.anchors = .only(pem: try ScratchDirectory.read(authority.root))
        trust.check = check
        return trust
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `a later transfer with the same handle makes a full handshake`(version: String) async throws {
        let answer = "keepalive_timeout 0; return 200 '$connection $ssl_session_reused';"
        let nginx = try await nginx("; ssl_protocols \(version)", name: "full.test", answer: answer)
        var responses: Set<String> = []
        for _ in 0..<4 {
            let record = await pool.start(try request(nginx, "full.test")).end()
            #expect(record.failure == nil && record.metrics?.tlsEnded != nil)
            #expect(record.text.hasSuffix(" ."))
            responses.insert(record.text)
            let handles = await withCheckedContinuation { continuation in
                engine.perform { continuation.resume(returning: $0.multis[1]?.unusedHandles.handles.count) }
            }
            #expect(handles == 1)
        }
        #expect(responses.count == 4)
    }

    /// Each transfer presents its own client certificate, although all of them have the same host.
    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `a transfer does not use the client certificate of an earlier one`(version: String) async throws {
        let options = """
            ; ssl_protocols \(version);
            ssl_client_certificate \(authority.root); ssl_verify_client optional; ssl_verify_depth 3
            """
        let nginx = try await nginx(options, name: "client.test", answer: "return 200 $ssl_client_s_dn;")
        let steps: [(client: String?, isReused: Bool)] = [
            ("one", false), ("two", false), (nil, false), ("one", true), ("two", true),
        ]
        for (client, isReused) in steps {
            var trust = try ours()
            trust.identity = try client.map { try identity("\($0).client.test") }
            let record = await pool.start(try request(nginx, "client.test", trust)).end()
            #expect(record.failure == nil)
            #expect(record.text == (client.map { "CN=\($0).client.test" } ?? ""))
            #expect(record.metrics?.reusedConnection == isReused)
        }
    }

    private func identity(_ name: String) throws -> TransferIdentity {
        let issued = try authority.client(name)
        return TransferIdentity(
            certificates: try ScratchDirectory.read(issued.chain),
            key: try ScratchDirectory.read(issued.key)
        )
    }

    @Test func `concurrent transfers share one HTTP2 connection, even if they start together`()
        async throws
    {
        let nginx = try await nginx(name: "two.test")
        let recorders = try (0..<80).map { _ in pool.start(try request(nginx, "two.test")) }
        var connections: Set<String> = []
        for recorder in recorders {
            let record = await recorder.end()
            #expect(record.failure == nil)
            #expect(record.metrics?.httpVersion == "h2")
            connections.insert(record.text)
        }
        #expect(connections.count == 1)
    }

    @Test func `without HTTP2 each transfer has a separate connection`() async throws {
        let origin = try ScriptedServer { _ in .stall(then: .respond("")) }
        let nginx = try await nginx(
            "",
            name: "one.test",
            answer: "proxy_set_header Connection-Number $connection; proxy_pass \(origin.url);"
        )
        let recorders = try (0..<20).map { _ in pool.start(try request(nginx, "one.test")) }
        // The server sends no response until all requests have arrived.
        let requests = await origin.requests(atLeast: 20)
        origin.release()
        for recorder in recorders {
            let record = await recorder.end()
            #expect(record.hasSucceeded)
            #expect(record.metrics?.httpVersion == "http/1.1")
        }
        #expect(Set(requests.flatMap { $0.values(of: "Connection-Number") }).count == 20)
    }

    @Test func `transfers that wait for another's handshake time out on time`() async throws {
        let deaf = try ScriptedServer(mode: .deaf)
        let recorders = (0..<8).map { _ in
            var request = TransferRequest(url: deaf.url.replacing("http:", with: "https:"))
            request.connectTimeout = .seconds(5)
            request.totalTimeout = .seconds(9)
            return pool.start(request)
        }
        for recorder in recorders { #expect(await recorder.end().failure?.code == 28) }
        let last = recorders.compactMap { $0.record.metrics?.ended }.max() ?? .zero
        // If the transfers failed one after another, the last would take eight times as long as the first.
        #expect(last < .seconds(30))
    }

    @Test func `a strict transfer after a lax one makes a new handshake and is rejected`() async throws {
        let nginx = try await nginx("", name: "strict.test")
        var lax = TransferTrust()
        lax.anchors = nil
        lax.checksHost = false
        #expect(await pool.run(try request(nginx, "strict.test", lax)).hasSucceeded)
        let failure = await pool.run(try request(nginx, "strict.test", .standard)).failure
        #expect(failure?.code == 60)
        #expect(failure?.phase == .tls)
        #expect(failure?.bytesSent == 0)
        #expect(failure?.trust?.cause == .chain)
        // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN
        #expect([20, 19].contains(failure?.trust?.presented?.verdict.code))
        #expect(failure?.trust?.presented?.chain.count == 2)
    }

    @Test func `a check receives the chain up to its root, once per connection, and decides`()
        async throws
    {
        let nginx = try await nginx("", name: "check.test")
        let seen = Lock<[PresentedTrust]>([])
        let accepting = TrustCheck { trust in
            seen.withLock { $0.append(trust) }
            return true
        }
        for _ in 0..<3 {
            #expect(await pool.run(try request(nginx, "check.test", ours(accepting))).hasSucceeded)
        }
        let shown = seen.withLock { $0 }
        #expect(shown.count == 1)
        #expect(shown.first?.host == "check.test")
        #expect(shown.first?.chain.count == 3)
        #expect(shown.first?.verdict.isTrusted == true)
        let failure = await pool.run(try request(nginx, "check.test", ours(TrustCheck { _ in false })))
            .failure
        #expect(failure?.code == 60)
        #expect(failure?.trust?.cause == .check)
    }

    @Test func `without anchors the check alone decides`() async throws {
        let nginx = try await nginx("", name: "alone.test")
        var trust = TransferTrust()
        trust.anchors = nil
        trust.checksHost = false
        trust.check = TrustCheck { !$0.verdict.isTrusted }
        #expect(await pool.run(try request(nginx, "alone.test", trust)).hasSucceeded)
        trust.check = TrustCheck { $0.verdict.isTrusted }
        #expect(await pool.run(try request(nginx, "alone.test", trust)).failure?.trust?.cause == .check)
    }

    @Test func `a wrong host name and an unknown issuer are reported differently`() async throws {
        let nginx = try await nginx("", name: "right.test")
        let failure = await pool.run(try request(nginx, "left.test")).failure
        #expect(failure?.code == 60)
        #expect(failure?.trust?.cause == .host)
        #expect(failure?.trust?.presented?.verdict.isTrusted == true)
    }

    @Test func `a trust that requires a revocation list and has none refuses every server`() async throws {
        let nginx = try await nginx("", name: "unlisted.test")
        var trust = try ours()
        trust.requiresRevocationList = true
        let failure = await pool.run(try request(nginx, "unlisted.test", trust)).failure
        #expect(failure?.code == 60)
        #expect(failure?.trust?.cause == .chain)
        // X509_V_ERR_UNABLE_TO_GET_CRL
        #expect(failure?.trust?.presented?.verdict.code == 3)
    }

    @Test func `an invalid revocation list is rejected before anything is sent`()
        async throws
    {
        var trust = TransferTrust()
        trust.revocationLists = Array("nonsense".utf8)
        var request = TransferRequest(url: "https://nowhere.test/")
        request.trust = trust
        let failure = await pool.run(request).failure
        #expect(failure?.code == 82)
        #expect(failure?.phase == .prepare)
    }
}

extension ScratchDirectory {
    fileprivate static func read(_ path: String) throws -> [UInt8] {
        let reader = try FileReader(path: path)
        return try [UInt8](unsafeUninitializedCapacity: Int(reader.length)) { buffer, count in
            count = try reader.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}

internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Checks of servers by the program's code, which may block. The servers are nginx.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(2)))
struct ProgramTrustTests {
    private let authority: TestAuthority
    private let engine: TransferEngine
    private let pool: TransferPool
    /// The servers about which the program was asked.
    private let asked = Recorder<PresentedTrust>()

    init() throws {
        authority = try TestAuthority.shared()
        engine = try TransferEngine(resolver: .answering("127.0.0.1"))
        pool = TransferPool(engine: engine)
    }

    /// Starts nginx with one certificate for all names.
    ///
    /// - Parameters:
    ///   - issued: The certificate. Default: that of `program.test`.
    ///   - protocols: The parameters of the `listen` directive. Default: none, and the server speaks HTTP/1.1.
    ///   - answer: The directives that handle a request. Default: returns the number of the connection.
    private func nginx(
        _ issued: TestAuthority.Issued? = nil,
        _ protocols: String = "",
        answer: String = "return 200 $connection;"
    ) async throws -> Nginx {
        let issued = try issued ?? authority.server("program.test")
        return try await Nginx(in: try ScratchDirectory()) { port in
            """
            server {
                listen 127.0.0.1:\(port) ssl \(protocols);
                ssl_certificate \(issued.chain); ssl_certificate_key \(issued.key);
                location / { \(answer) }
            }
            """
        }
    }

    private func request(
        _ nginx: Nginx,
        _ host: String,
        _ check: TrustCheck,
        _ adjust: (inout TransferRequest) -> Void = { _ in }
    ) -> TransferRequest {
        var request = TransferRequest(url: nginx.url.replacing("http://127.0.0.1", with: "https://\(host)"))
        request.trust.anchors = nil
        request.trust.checksHost = false
        request.trust.check = check
        adjust(&request)
        return request
    }

    /// Returns a check that records each question.
    private func check(_ decide: @escaping @Sendable (PresentedTrust) -> Bool = { _ in true }) -> TrustCheck {
        TrustCheck(by: .program) { [asked] server in
            asked.record(server)
            return decide(server)
        }
    }

    /// Returns a check that accepts a server once the gate is open.
    private func check(waitingFor gate: Gate) -> TrustCheck {
        check { _ in
            gate.wait()
            return true
        }
    }

    private func isAsked() async throws { try await asked.wait { !$0.isEmpty } }

    // MARK: Blocking

    @Test func `a check that does not return delays neither other hosts nor other pools`() async throws {
        let nginx = try await nginx()
        let gate = Gate()
        let check = check { server in
            if server.host == "slow.test" { gate.wait() }
            return true
        }
        let slow = pool.start(request(nginx, "slow.test", check))
        try await isAsked()
        #expect(await pool.run(request(nginx, "quick.test", check)).hasSucceeded)
        let other = TransferPool(engine: engine)
        let quick = TrustCheck(by: .program) { _ in true }
        #expect(await other.run(request(nginx, "slow.test", quick)).hasSucceeded)
        #expect(slow.record.ends.isEmpty)
        gate.open()
        #expect(await slow.end().hasSucceeded)
    }

    @Test func `a check that does not return ends its own transfer, and a later one shares its answer`()
        async throws
    {
        let nginx = try await nginx()
        let gate = Gate()
        let check = check(waitingFor: gate)
        let late = await pool.run(request(nginx, "late.test", check) { $0.idleTimeout = .seconds(1) })
        #expect(late.failure?.code == 28)
        #expect(late.failure?.phase == .tls)
        #expect(late.failure?.bytesSent == 0)
        let message = "the program has not evaluated the server's certificates within 1.0 seconds"
        #expect(late.failure?.message == message)
        let total = await pool.run(
            request(nginx, "late.test", check) { $0.totalTimeout = .seconds(2) }
        )
        #expect(total.failure?.code == 28)
        #expect(total.failure?.phase == .tls)
        let next = pool.start(request(nginx, "late.test", check))
        gate.open()
        #expect(await next.end().hasSucceeded)
        #expect(asked.values.count == 1)
        #expect(late.ends.count == 1)
    }

    @Test func `transfers of one pool share a call that does not return, each with its own time limit`()
        async throws
    {
        let nginx = try await nginx()
        let gate = Gate()
        let check = check(waitingFor: gate)
        let first = pool.start(request(nginx, "pool.test", check))
        try await isAsked()
        let late = await pool.run(
            request(nginx, "pool.test", check) {
                $0.idleTimeout = .seconds(1)
                $0.totalTimeout = .seconds(30)
            }
        )
        let message = "the program has not evaluated the server's certificates within 1.0 seconds"
        #expect(late.failure?.message == message)
        let others = (0..<3).map { _ in pool.start(request(nginx, "pool.test", check)) }
        gate.open()
        for recorder in [first] + others { #expect(await recorder.end().hasSucceeded) }
        #expect(asked.values.count == 1)
    }

    @Test func `a transfer can be cancelled while the program decides`() async throws {
        let nginx = try await nginx()
        let gate = Gate()
        let check = check(waitingFor: gate)
        let recorder = TransferRecorder()
        let id = pool.start(request(nginx, "cancel.test", check)) { (event: TransferEvent) in
            recorder.deliver(event)
        }
        try await isAsked()
        engine.cancel(id)
        let failure = await recorder.end().failure
        #expect(failure?.code == 42)
        #expect(failure?.phase == .tls)
        gate.open()
        #expect(await pool.run(request(nginx, "cancel.test", check)).hasSucceeded)
        #expect(recorder.record.ends.count == 1)
        #expect(recorder.record.heads.isEmpty)
    }

    @Test func `a transfer can be paused while the program decides`() async throws {
        let nginx = try await nginx()
        let gate = Gate()
        let check = check(waitingFor: gate)
        let recorder = TransferRecorder()
        let id = pool.start(request(nginx, "pause.test", check)) { (event: TransferEvent) in
            recorder.deliver(event)
        }
        try await isAsked()
        engine.pause(id, .receiving)
        gate.open()
        await recorder.wait { $0.head != nil }
        await engine.settle()
        #expect(recorder.record.body.isEmpty)
        engine.resume(id)
        #expect(await !recorder.end().body.isEmpty)
    }

    // MARK: Answers

    @Test func `transfers with the same question share one call, and later connections its answer`()
        async throws
    {
        let nginx = try await nginx()
        let gate = Gate()
        let check = check(waitingFor: gate)
        // Each pool makes its own connection.
        let pools = (0..<6).map { _ in TransferPool(engine: engine) }
        let recorders = pools.map { $0.start(request(nginx, "shared.test", check)) }
        try await isAsked()
        gate.open()
        var connections: Set<String> = []
        for recorder in recorders { connections.insert(await recorder.end().text) }
        #expect(connections.count == 6)
        #expect(recorders.allSatisfy { $0.record.hasSucceeded })
        #expect(asked.values.count == 1)
    }

    @Test(arguments: ["", "http2"])
    func `transfers that waited for an answer share a connection that speaks HTTP2`(protocols: String)
        async throws
    {
        let nginx = try await nginx(nil, protocols)
        let gate = Gate()
        let check = check(waitingFor: gate)
        let first = pool.start(request(nginx, "together.test", check))
        try await isAsked()
        let others = (0..<3).map { _ in pool.start(request(nginx, "together.test", check)) }
        // It starts last, so the other transfers wait for the answer when it ends.
        let late = await pool.run(request(nginx, "together.test", check) { $0.idleTimeout = .seconds(1) })
        #expect(late.failure?.phase == .tls)
        gate.open()
        var connections: Set<String> = []
        for recorder in [first] + others {
            let record = await recorder.end()
            #expect(record.hasSucceeded)
            connections.insert(record.text)
        }
        if protocols == "http2" { #expect(connections.count == 1) }
        #expect(asked.values.count == 1)
    }

    @Test func `a transfer can be cancelled while it waits for another's connection`() async throws {
        let nginx = try await nginx()
        let gate = Gate()
        let check = check(waitingFor: gate)
        let requests = (0..<4).map { _ in request(nginx, "waiting.test", check) }
        let recorders = requests.map { _ in TransferRecorder() }
        let ids = zip(requests, recorders).map { request, recorder in
            pool.start(request) { (event: TransferEvent) in recorder.deliver(event) }
        }
        try await isAsked()
        let late = await pool.run(request(nginx, "waiting.test", check) { $0.idleTimeout = .seconds(1) })
        #expect(late.failure?.phase == .tls)
        gate.open()
        for id in ids.dropFirst() { engine.cancel(id) }
        #expect(await recorders[0].end().hasSucceeded)
        for recorder in recorders.dropFirst() {
            let record = await recorder.end()
            #expect(record.hasSucceeded || record.failure?.code == 42)
            #expect(record.ends.count == 1)
        }
        #expect(await pool.run(request(nginx, "waiting.test", check)).hasSucceeded)
    }

    @Test func `an answer is valid only for its host and its check`() async throws {
        let nginx = try await nginx()
        let check = check()
        for host in ["one.test", "two.test", "one.test", "two.test"] {
            let pool = TransferPool(engine: engine)
            #expect(await pool.run(request(nginx, host, check)).hasSucceeded)
        }
        #expect(asked.values.map(\.host) == ["one.test", "two.test"])
        let rejecting = self.check { _ in false }
        #expect(await pool.run(request(nginx, "one.test", rejecting)).failure?.trust?.cause == .check)
    }

    @Test func `a rejected server is not remembered, and receives nothing`() async throws {
        let origin = try ScriptedServer { _ in .respond("") }
        let nginx = try await nginx(answer: "proxy_pass \(origin.url);")
        let check = check { _ in false }
        for _ in 0..<2 {
            let failure = await pool.run(request(nginx, "reject.test", check)).failure
            #expect(failure?.code == 60)
            #expect(failure?.phase == .tls)
            #expect(failure?.bytesSent == 0)
            #expect(failure?.trust?.cause == .check)
            #expect(failure?.trust?.presented == asked.values.last)
        }
        #expect(asked.values.count == 2)
        #expect(origin.requests.isEmpty)
    }

    @Test(arguments: ["", "http2"])
    func `a request is sent once, after the answer`(protocols: String) async throws {
        let origin = try ScriptedServer { _ in .respond("stored") }
        let nginx = try await nginx(nil, protocols, answer: "proxy_pass \(origin.url);")
        let body = [UInt8](repeating: 7, count: 100_000)
        let record = await pool.run(
            request(nginx, "body.test", check()) {
                $0.method = "POST"
                $0.body = .bytes(body)
                $0.allowsConnectionReuse = false
            }
        )
        #expect(record.hasSucceeded)
        #expect(record.text == "stored")
        #expect(record.heads.count == 1 && record.ends.count == 1)
        #expect(record.progress.last?.sent == 100_000)
        #expect(record.progress.map(\.sent) == record.progress.map(\.sent).sorted())
        #expect(record.metrics?.requestBodyBytes == 100_000)
        #expect(record.metrics?.reusedConnection == false)
        #expect(origin.requests.map(\.body) == [body])
    }

    // MARK: Changing certificates

    /// A server whose certificate changes with each question to the program.
    private func changing(_ count: Int) async throws -> (server: Nginx, change: @Sendable () -> Void) {
        let issued = try (0..<count).map { try authority.server("change-\($0).test") }
        let scratch = try ScratchDirectory()
        let install: @Sendable (TestAuthority.Issued) throws -> Void = { issued in
            let manager = FileManager.default
            let files = [("current.chain", issued.chain), ("current.key", issued.key)]
            for (name, path) in files {
                try? manager.removeItem(atPath: scratch.file(name))
                try manager.copyItem(atPath: path, toPath: scratch.file(name))
            }
        }
        try install(issued[0])
        // nginx reads the files of a path with a variable in each handshake.
        let nginx = try await Nginx(in: scratch) { port in
            """
            map $ssl_server_name $certificate { default current; }
            server {
                listen 127.0.0.1:\(port) ssl;
                ssl_certificate \(scratch.path)/$certificate.chain;
                ssl_certificate_key \(scratch.path)/$certificate.key;
                location / { return 200 "changed"; }
            }
            """
        }
        let last = Lock(0)
        return (
            nginx,
            {
                let next = last.withLock { last in
                    last += 1
                    return last
                }
                if next < count { try? install(issued[next]) }
            }
        )
    }

    @Test(arguments: [true, false])
    func `other certificates than the accepted ones are asked about again`(acceptsSecond: Bool) async throws {
        let (nginx, change) = try await changing(2)
        let check = check { [asked] _ in
            change()
            return asked.values.count == 1 || acceptsSecond
        }
        let record = await pool.run(request(nginx, "change.test", check))
        #expect(asked.values.count == 2)
        #expect(Set(asked.values.compactMap(\.chain.first)).count == 2)
        #expect(record.hasSucceeded == acceptsSecond)
        if !acceptsSecond {
            #expect(record.failure?.trust?.cause == .check)
            #expect(record.failure?.trust?.presented == asked.values.last)
        }
    }

    @Test func `a server with other certificates in each handshake is refused`() async throws {
        let (nginx, change) = try await changing(6)
        let check = check { _ in
            change()
            return true
        }
        let failure = await pool.run(request(nginx, "endless.test", check)).failure
        #expect(failure?.code == 60)
        #expect(failure?.bytesSent == 0)
        #expect(failure?.message == "the server presented different certificates in each of 5 handshakes")
        #expect(asked.values.count == 4)
    }
}

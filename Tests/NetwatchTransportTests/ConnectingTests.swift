internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetwatchEventLoop
@testable internal import NetwatchTransport

/// Hosts with several addresses, some of which do not respond.
@Suite(.timeLimit(.minutes(1))) struct ConnectingTests {
    private func engine(_ addresses: String...) throws -> TransferEngine {
        let addresses = addresses.compactMap { IPAddress($0) }
        return try TransferEngine(resolver: NameResolver { _ in .success(addresses) })
    }

    private func request(_ port: UInt16) -> TransferRequest {
        TransferRequest(url: "http://netwatch.invalid:\(port)/")
    }

    @Test func `where the first address is silent, the second one is tried beside it`() async throws {
        let silent = try UnansweringPort()
        let server = try ScriptedServer(address: "127.0.0.2", port: silent.port)
        let record = await (try engine("127.0.0.1", "127.0.0.2")).run(request(server.port))
        #expect(record.hasSucceeded)
        #expect(record.metrics?.remoteAddress == "127.0.0.2")
        #expect(try #require(record.metrics?.connected) >= ConnectionRace.attemptDelay)
    }

    @Test func `the address that answered is remembered, until the path changes`() async throws {
        let silent = try UnansweringPort()
        let server = try ScriptedServer(address: "127.0.0.2", port: silent.port)
        let engine = try engine("127.0.0.1", "127.0.0.2")
        #expect(await engine.run(request(server.port)).hasSucceeded)
        #expect(await winner(engine, server) == "127.0.0.2")
        engine.renewConnections()
        #expect(await winner(engine, server) == nil)
    }

    @Test func `an address that takes connections and does not answer is not remembered`() async throws {
        let server = try ScriptedServer { $0.number == 2 ? .close : .respond("") }
        let engine = try engine("127.0.0.1")
        var request = request(server.port)
        request.allowsConnectionReuse = false
        #expect(await engine.run(request).hasSucceeded)
        #expect(await winner(engine, server) == "127.0.0.1")
        #expect(await engine.run(request).failure?.code == 52)
        #expect(await winner(engine, server) == nil)
    }

    private func winner(_ engine: TransferEngine, _ server: ScriptedServer) async -> String? {
        await engine.winners.address(of: "netwatch.invalid", port: server.port)?.description
    }

    @Test func `a lookup that has only waited for a thread says nothing about the network`() async throws {
        let gate = NetwatchTestSupport.Gate()
        defer { gate.open() }
        let begun = Recorder<String>()
        let resolver = NameResolver(maximumThreads: 1) { name in
            begun.record(name)
            gate.wait()
            return .failure(.init(code: EAI_AGAIN))
        }
        resolver.resolve("silent.invalid") { _ in }
        try await begun.wait { !$0.isEmpty }
        var request = request(80)
        request.connectTimeout = .milliseconds(50)
        let engine = try TransferEngine(resolver: resolver)
        let failure = try #require(await engine.run(request).failure)
        #expect(failure.code == 28)
        #expect(failure.phase == .prepare)
        #expect(failure.message.hasSuffix("while no thread was free for it"))
    }

    @Test func `after a refusal the next address follows at once`() async throws {
        let refusing = try RefusingPort()
        let server = try ScriptedServer(address: "127.0.0.9", port: refusing.port)
        let addresses =
            (1...8).map { "127.0.0.\($0)" }.compactMap { IPAddress($0) } + [IPAddress("127.0.0.9")!]
        let engine = try TransferEngine(resolver: NameResolver { _ in .success(addresses) })
        let metrics = try #require(await engine.run(request(server.port)).metrics)
        #expect(metrics.remoteAddress == "127.0.0.9")
    }

    @Test func `a failure lists every address with its error`() async throws {
        let refusing = try RefusingPort()
        let engine = try engine("127.0.0.1", "::1")
        let failure = try #require(await engine.run(request(refusing.port)).failure)
        #expect(failure.code == 7)
        #expect(failure.osErrno == ECONNREFUSED)
        #expect(failure.phase == .connect)
        #expect(failure.connectionAttempts.map { "\($0.address)" } == ["127.0.0.1", "::1"])
        #expect(failure.connectionAttempts.allSatisfy { $0.error?.errno == ECONNREFUSED })
        #expect(failure.message == "127.0.0.1: Connection refused; ::1: Connection refused")
    }

    @Test func `a timeout names the addresses that did not answer`() async throws {
        let silent = try UnansweringPort()
        let engine = try engine("127.0.0.1", "127.0.0.2")
        var request = request(silent.port)
        request.connectTimeout = .milliseconds(500)
        let failure = try #require(await engine.run(request).failure)
        #expect(failure.code == 28)
        #expect(failure.phase == .connect)
        #expect(failure.bytesSent == 0)
        #expect(
            failure.message
                == "no connection within 0.5 seconds (127.0.0.1: no answer; 127.0.0.2: Connection refused)"
        )
    }

    @Test func `a transfer without a descriptor to be had says that this machine is short of them`()
        async throws
    {
        let failure = TransferFailure.notConnected(
            ConnectionFailure(
                attempts: [
                    ConnectionAttempt(
                        address: IPAddress("192.0.2.1")!,
                        error: SystemError(call: "socket", errno: EMFILE)
                    )
                ],
                untried: 0
            )
        )
        #expect(failure.isLocalShortage)
        #expect(failure.code == 7)
    }

    @Test func `a stream connects to the address that answers`() async throws {
        let silent = try UnansweringPort()
        let server = try SocketServer.echo(address: "127.0.0.2", port: silent.port)
        let stream = try engine("127.0.0.1", "127.0.0.2").stream(
            to: "netwatch.invalid",
            port: Int(server.port)
        )
        stream.resume()
        #expect(await stream.write([1, 2, 3]) == nil)
        #expect(await stream.read(3...3).bytes == [1, 2, 3])
    }
}

/// Open connections are tried before a name lookup.
@Suite(.timeLimit(.minutes(1))) struct PooledConnectionTests {
    /// A resolver that counts lookups, and stops responding when `isSilent` is set.
    private final class Names: Sendable {
        let count = Atomic(0)
        let isSilent = Atomic(false)

        func resolver() -> NameResolver {
            NameResolver { _ in
                self.count.add(1, ordering: .relaxed)
                return self.isSilent.load(ordering: .relaxed)
                    ? .failure(.init(code: EAI_AGAIN)) : .success([IPAddress("127.0.0.1")!])
            }
        }
    }

    private let names = Names()
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine(resolver: names.resolver())
    }

    private func request(_ server: ScriptedServer, _ method: String = "GET") -> TransferRequest {
        TransferRequest(url: "http://netwatch.invalid:\(server.port)/", method: method)
    }

    private var lookups: Int { names.count.load(ordering: .relaxed) }

    @Test func `while the name servers are silent an open connection is used all the same`() async throws {
        let server = try ScriptedServer()
        #expect(await engine.run(request(server)).hasSucceeded)
        names.isSilent.store(true, ordering: .relaxed)
        // Clears the resolver's cache.
        await engine.resolver.renew()
        for _ in 0..<10 {
            let record = await engine.run(request(server))
            #expect(record.hasSucceeded)
            #expect(record.metrics?.reusedConnection == true)
            #expect(record.metrics?.lookupEnded == nil)
        }
        #expect(lookups == 1)
        #expect(server.connectionCount == 1)
    }

    @Test func `beside a connection that is in use a second one is made`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? .stall(then: .respond("late")) : .respond("") }
        let first = TransferRecorder()
        engine.start(request(server)) { first.deliver($0) }
        await server.requests(atLeast: 1)
        #expect(await engine.run(request(server)).metrics?.reusedConnection == false)
        #expect(await engine.run(request(server)).metrics?.reusedConnection == true)
        server.release()
        #expect(await first.end().hasSucceeded)
        #expect(server.requests.map(\.connection) == [1, 2, 2])
    }

    @Test func `a connection that ends as the request is sent over it is replaced, and the body sent again`()
        async throws
    {
        let server = try ScriptedServer { $0.number == 2 ? .close : .respond("done") }
        #expect(await engine.run(request(server)).hasSucceeded)
        var second = request(server, "PUT")
        second.body = .bytes([1, 2, 3])
        let record = await engine.run(second)
        #expect(record.text == "done")
        #expect(record.metrics?.reusedConnection == false)
        #expect(record.metrics?.connected != nil)
        #expect(server.requests.map(\.connection) == [1, 1, 2])
        #expect(server.requests.map(\.body) == [[], [1, 2, 3], [1, 2, 3]])
    }

    @Test func `a request whose connection ended and could not be replaced may have arrived`() async throws {
        let server = try ScriptedServer { $0.number == 2 ? .close : .respond("") }
        #expect(await engine.run(request(server)).hasSucceeded)
        names.isSilent.store(true, ordering: .relaxed)
        await engine.resolver.renew()
        let failure = try #require(await engine.run(request(server, "PUT")).failure)
        #expect(failure.code == 6)
        #expect([.request, .response].contains(failure.phase))
        #expect(failure.bytesSent > 0)
    }

    @Test func `cancelling a transfer whose connection is being replaced ends it once`() async throws {
        let gate = Gate()
        let lookups = Atomic(0)
        let engine = try TransferEngine(
            resolver: NameResolver { name in
                lookups.add(1, ordering: .relaxed).newValue == 1
                    ? .success([IPAddress("127.0.0.1")!]) : gate.lookUp(name)
            }
        )
        let server = try ScriptedServer { $0.number == 2 ? .close : .respond("") }
        #expect(await engine.run(request(server)).hasSucceeded)
        await engine.resolver.renew()
        let recorder = TransferRecorder()
        let id = engine.start(request(server)) { recorder.deliver($0) }
        await gate.isEntered()
        engine.cancel(id)
        let record = await recorder.end()
        gate.open()
        #expect(record.failure?.code == 42)
        #expect(record.failure?.bytesSent ?? 0 > 0)
        #expect(record.ends.count == 1)
    }

    @Test func `a challenge that ends the connection is answered over another`() async throws {
        let server = try ScriptedServer { request in
            request.values(of: "Authorization").isEmpty
                ? .send(
                    "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n"
                        + "Content-Length: 0\r\nConnection: close\r\n\r\n",
                    then: .close
                ) : .respond("in")
        }
        var request = request(server)
        request.credentials = TransferCredentials(user: "u", password: "p", schemes: [.digest])
        let record = await engine.run(request)
        #expect(record.text == "in")
        #expect(server.requests.map(\.connection) == [1, 2])
    }
}

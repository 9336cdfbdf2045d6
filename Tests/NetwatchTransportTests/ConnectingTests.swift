internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetwatchEventLoop
@testable internal import NetwatchTransport

/// Hosts with several addresses, some of which do not answer.
@Suite(.timeLimit(.minutes(5))) struct ConnectingTests {
    private func request(_ port: UInt16) -> TransferRequest {
        TransferRequest(url: "http://netwatch.invalid:\(port)/")
    }

    @Test func `if the first address does not answer, the second one is tried in parallel`() async throws {
        let silent = try UnansweringPort()
        let server = try ScriptedServer(address: "127.0.0.2", port: silent.port)
        let record = await (try TransferEngine(resolver: .answering("127.0.0.1", "127.0.0.2"))).run(
            request(server.port)
        )
        #expect(record.hasSucceeded)
        #expect(record.metrics?.remoteAddress == "127.0.0.2")
        #expect(try #require(record.metrics?.connected) >= ConnectionRace.attemptDelay)
    }

    @Test func `the address that answered is preferred until the path changes`() async throws {
        let silent = try UnansweringPort()
        let server = try ScriptedServer(address: "127.0.0.2", port: silent.port)
        let engine = try TransferEngine(resolver: .answering("127.0.0.1", "127.0.0.2"))
        #expect(await engine.run(request(server.port)).hasSucceeded)
        #expect(await preferredAddresses(engine, server.port) == ["127.0.0.2"])
        engine.renewConnections()
        #expect(await preferredAddresses(engine, server.port).isEmpty)
    }

    @Test func `an address that accepts connections but does not respond is not preferred`() async throws {
        let server = try ScriptedServer.closingSecondRequest()
        let engine = try TransferEngine(resolver: .answering("127.0.0.1"))
        var request = request(server.port)
        request.allowsConnectionReuse = false
        #expect(await engine.run(request).hasSucceeded)
        #expect(await preferredAddresses(engine, server.port) == ["127.0.0.1"])
        #expect(await engine.run(request).failure?.code == 52)
        #expect(await preferredAddresses(engine, server.port).isEmpty)
    }

    private func preferredAddresses(_ engine: TransferEngine, _ port: UInt16) async -> [String] {
        await engine.preferredAddresses.addresses(of: "netwatch.invalid", port: port).map(
            \.description
        )
    }

    @Test func `a request succeeds if only the last of forty addresses accepts the connection`() async throws
    {
        let refusing = try RefusingPort()
        let server = try ScriptedServer(address: "127.0.0.40", port: refusing.port)
        let addresses = (1...40).compactMap { IPAddress("127.0.0.\($0)") }
        let engine = try TransferEngine(resolver: NameResolver { _ in .success(addresses) })
        #expect(await engine.run(request(server.port)).metrics?.remoteAddress == "127.0.0.40")
    }

    @Test func `after a timeout the next request begins with the addresses that were not tried`() async throws
    {
        let silent = try UnansweringPort(address: "0.0.0.0")
        let addresses = (1...40).map { "127.0.0.\($0)" }
        let resolver = NameResolver { _ in .success(addresses.map { IPAddress($0)! }) }
        // The answer is then in the cache, so the timeout cannot expire during the lookup.
        await withCheckedContinuation { done in resolver.resolve("netwatch.invalid") { _ in done.resume() } }
        let engine = try TransferEngine(resolver: resolver)
        var request = request(silent.port)
        request.connectTimeout = .milliseconds(200)
        #expect(await engine.run(request).failure?.code == 28)
        let next = await preferredAddresses(engine, silent.port)
        // A late loop postpones the timeout, so it may have tried more than one address.
        let tried = try #require(addresses.firstIndex { $0 == next.first })
        #expect(tried > 0)
        #expect(next == Array(addresses[tried...] + addresses[..<tried]))
    }

    @Test func `a lookup that waited for a thread until the timeout fails in the phase prepare`() async throws
    {
        let gate = Gate()
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
        #expect(failure.message.hasSuffix(": all resolver threads were busy"))
    }

    @Test func `after a refusal the next address is tried immediately`() async throws {
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
        let engine = try TransferEngine(resolver: .answering("127.0.0.1", "::1"))
        let failure = try #require(await engine.run(request(refusing.port)).failure)
        #expect(failure.code == 7)
        #expect(failure.osErrno == ECONNREFUSED)
        #expect(failure.phase == .connect)
        #expect(failure.connectionAttempts.map { "\($0.address)" } == ["127.0.0.1", "::1"])
        #expect(failure.connectionAttempts.allSatisfy { $0.error?.errno == ECONNREFUSED })
        #expect(failure.message == "127.0.0.1: Connection refused; ::1: Connection refused")
    }

    @Test func `a connect timeout lists the addresses that did not answer`() async throws {
        let silent = try UnansweringPort()
        let engine = try TransferEngine(resolver: .answering("127.0.0.1", "127.0.0.2"))
        var request = request(silent.port)
        // Much longer than the delay of 250 ms before the second address is tried, even on a busy machine.
        request.connectTimeout = .seconds(10)
        let failure = try #require(await engine.run(request).failure)
        #expect(failure.code == 28)
        #expect(failure.phase == .connect)
        #expect(failure.bytesSent == 0)
        #expect(
            failure.message
                == "no connection within 10.0 seconds (127.0.0.1: no answer; 127.0.0.2: Connection refused)"
        )
    }

    @Test func `a lack of descriptors is reported as a local shortage`()
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
                untried: []
            )
        )
        #expect(failure.isLocalShortage)
        #expect(failure.code == 7)
    }

    @Test func `a stream connects to the address that answers`() async throws {
        let silent = try UnansweringPort()
        let server = try SocketServer.echo(address: "127.0.0.2", port: silent.port)
        let stream = try TransferEngine(resolver: .answering("127.0.0.1", "127.0.0.2")).stream(
            to: "netwatch.invalid",
            port: Int(server.port)
        )
        stream.resume()
        #expect(await stream.write([1, 2, 3]) == nil)
        #expect(await stream.read(3...3).bytes == [1, 2, 3])
    }
}

/// Open connections are tried before a name lookup.
@Suite(.timeLimit(.minutes(5))) struct PooledConnectionTests {
    /// The source of a resolver's answers. It counts lookups, and fails all of them when `isUnresponsive` is set.
    private final class Names: Sendable {
        let count = Atomic(0)
        let isUnresponsive = Atomic(false)

        func resolver() -> NameResolver {
            NameResolver { _ in
                self.count.add(1, ordering: .relaxed)
                return self.isUnresponsive.load(ordering: .relaxed)
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

    @Test func `an open connection is used even if name servers are silent`() async throws {
        let server = try ScriptedServer()
        #expect(await engine.run(request(server)).hasSucceeded)
        names.isUnresponsive.store(true, ordering: .relaxed)
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

    @Test func `a second connection is made while the first one is in use`() async throws {
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

    @Test func `a reused connection that ends is replaced, and the body is sent again`()
        async throws
    {
        let server = try ScriptedServer.closingSecondRequest(responding: "done")
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

    @Test func `a request whose connection could not be replaced counts as sent`() async throws {
        let server = try ScriptedServer.closingSecondRequest()
        #expect(await engine.run(request(server)).hasSucceeded)
        names.isUnresponsive.store(true, ordering: .relaxed)
        await engine.resolver.renew()
        let failure = try #require(await engine.run(request(server, "PUT")).failure)
        #expect(failure.code == 6)
        #expect([.request, .response].contains(failure.phase))
        #expect(failure.bytesSent > 0)
    }

    @Test func `cancelling during a reconnection ends the transfer once`() async throws {
        let gate = LookupGate()
        let lookups = Atomic(0)
        let engine = try TransferEngine(
            resolver: NameResolver { name in
                lookups.add(1, ordering: .relaxed).newValue == 1
                    ? .success([IPAddress("127.0.0.1")!]) : gate.lookUp(name)
            }
        )
        let server = try ScriptedServer.closingSecondRequest()
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

    @Test func `a challenge that closes the connection is answered over a new one`() async throws {
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

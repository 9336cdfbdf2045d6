internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Connections that fail, time out or are cancelled.
@Suite(.timeLimit(.minutes(5))) struct StreamEndingTests {
    /// Returns the failures of a read and a write, once both have failed.
    private func failures(of connection: StreamConnection) async -> [TransferFailure?] {
        async let write = connection.write([1])
        let read = await connection.read(1...1)
        return [read.failure, await write]
    }

    @Test func `a refused connection fails pending and later operations`() async throws {
        let port = try RefusingPort()
        let connection = TransferEngine.shared.stream(to: "127.0.0.1", port: Int(port.port))
        connection.resume()
        for failure in await failures(of: connection) + failures(of: connection) {
            #expect(failure?.code == 7)
            #expect(failure?.osErrno == ECONNREFUSED)
            #expect(failure?.phase == .connect)
        }
    }

    @Test func `a name without addresses fails`() async throws {
        let resolver = NameResolver { _ in .failure(NameResolver.Failure(code: EAI_NONAME)) }
        let engine = try TransferEngine(resolver: resolver)
        let connection = engine.stream(to: "missing.invalid", port: 80)
        connection.resume()
        for failure in await failures(of: connection) {
            #expect(failure?.code == 6)
            #expect(failure?.resolverCode == EAI_NONAME)
            #expect(failure?.phase == .resolve)
        }
    }

    @Test(arguments: [
        ("127.0.0.1", 0), ("127.0.0.1", 65536), ("127.0.0.1", -1), ("", 80), ("127.0.0.1\0.example", 80),
    ])
    func `an invalid host or port is rejected`(host: String, port: Int) async {
        let connection = TransferEngine.shared.stream(to: host, port: port)
        connection.resume()
        for failure in await failures(of: connection) {
            #expect(failure?.code == 3)
            #expect(failure?.phase == .prepare)
        }
    }

    @Test func `addresses are tried until one answers`() async throws {
        let server = try SocketServer.echo()
        // Only the last address has a listener on this port.
        let engine = try TransferEngine(resolver: .answering("::1", "127.0.0.2", "127.0.0.3", "127.0.0.1"))
        let connection = engine.stream(to: "several.example", port: Int(server.port))
        connection.resume()
        #expect(await connection.write([9]) == nil)
        #expect(await connection.read(1...1).bytes == [9])
    }

    @Test func `an address that does not answer does not delay the next one by its timeout`() async throws {
        let silent = try UnansweringPort()
        let server = try SocketServer.echo(address: "127.0.0.2", port: silent.port)
        let engine = try TransferEngine(resolver: .answering("127.0.0.1", "127.0.0.2"))
        let connection = engine.stream(
            to: "several.example",
            port: Int(server.port),
            connectTimeout: .seconds(3600)
        )
        connection.resume()
        #expect(await connection.write([9]) == nil)
        #expect(await connection.read(1...1).bytes == [9])
    }

    @Test func `a refusal does not end an attempt in progress`() async throws {
        let silent = try UnansweringPort()
        // The second address has no listener on this port.
        let engine = try TransferEngine(resolver: .answering("127.0.0.1", "127.0.0.2"))
        let connection = engine.stream(
            to: "several.example",
            port: Int(silent.port),
            connectTimeout: .seconds(3600)
        )
        connection.resume()
        #expect(await connection.read(1...1, timeout: .seconds(1)).failure?.code == 28)
        #expect(await connection.read(1...1, timeout: .milliseconds(1)).failure?.phase == .connect)
    }

    @Test func `connecting times out`() async throws {
        let silent = try UnansweringPort()
        let connection = TransferEngine.shared.stream(
            to: "127.0.0.1",
            port: Int(silent.port),
            connectTimeout: .milliseconds(100)
        )
        connection.resume()
        for failure in await failures(of: connection) {
            #expect(failure?.code == 28)
            #expect(failure?.phase == .connect)
        }
    }

    @Test func `the connect timeout also ends a name lookup`() async throws {
        let gate = LookupGate()
        let engine = try TransferEngine(resolver: gate.resolver)
        // Long enough for the resolver's thread to begin the lookup, even on a busy machine.
        let connection = engine.stream(to: "slow.example", port: 80, connectTimeout: .seconds(10))
        connection.resume()
        let failures = await failures(of: connection)
        #expect(failures.map(\.?.code) == [28, 28])
        #expect(failures.map(\.?.phase) == [.resolve, .resolve])
        gate.open()
    }

    @Test func `cancelling a connection in any phase fails its pending operations`() async throws {
        let silent = try UnansweringPort()
        let gate = LookupGate()
        let deaf = try SocketServer { $0.waitWithoutReading() }
        let engine = try TransferEngine(resolver: gate.resolver)
        let connections = [
            TransferEngine.shared.stream(to: "127.0.0.1", port: Int(deaf.port)),
            engine.stream(to: "slow.example", port: 80),
            TransferEngine.shared.stream(to: "127.0.0.1", port: Int(silent.port)),
            TransferEngine.shared.stream(to: "127.0.0.1", port: Int(deaf.port)),
        ]
        for connection in connections.dropFirst() { connection.resume() }
        await gate.isEntered()
        for connection in connections {
            let codes = Recorder<Int32?>()
            connection.read(atLeast: 10, atMost: 10, timeout: nil) { codes.record($0.failure?.code) }
            connection.read(atLeast: 10, atMost: 10, timeout: nil) { codes.record($0.failure?.code) }
            connection.write([UInt8](repeating: 0, count: 50 << 20), timeout: nil) { codes.record($0?.code) }
            connection.write([], timeout: .seconds(60)) { codes.record($0?.code) }
            connection.cancel()
            connection.cancel()
            try await codes.wait { $0.count == 4 }
            #expect(await failures(of: connection).map(\.?.code) == [42, 42])
            #expect(codes.values == [42, 42, 42, 42])
        }
        gate.open()
    }

    @Test func `bytes received before a read's timeout are kept for the next read`() async throws {
        let server = try SocketServer { peer in
            peer.write([1, 2, 3])
            _ = peer.readAll()
        }
        let connection = TransferEngine.shared.stream(to: "127.0.0.1", port: Int(server.port))
        connection.resume()
        #expect(await connection.read(1...1).bytes == [1])
        let late = await connection.read(5...9, timeout: .milliseconds(100))
        #expect(late.failure?.code == 28)
        #expect(late.bytes.isEmpty)
        #expect(await connection.read(1...1).bytes == [2])
        #expect(await connection.read(1...1).bytes == [3])
    }

    @Test func `a write's timeout ends the connection only if some bytes were sent`()
        async throws
    {
        let server = try SocketServer { peer in
            while peer.read(atMost: 1) == [1] {}
            peer.resetWhenClosed()
        }
        let connection = TransferEngine.shared.stream(to: "127.0.0.1", port: Int(server.port))
        connection.resume()
        #expect(await connection.write([1]) == nil)
        connection.suspend()
        let late = await connection.write([1], timeout: .milliseconds(50))
        #expect(late?.code == 28 && late?.phase == .response && late?.bytesSent == 1)
        connection.resume()
        #expect(await connection.write([1]) == nil)

        let deaf = try SocketServer { $0.waitWithoutReading() }
        let other = TransferEngine.shared.stream(to: "127.0.0.1", port: Int(deaf.port))
        other.resume()
        // Waits for the connection, because the timeout would otherwise end the write before it.
        #expect(await other.write([1]) == nil)
        #expect(
            await other.write([UInt8](repeating: 0, count: 50 << 20), timeout: .milliseconds(300))?.code == 28
        )
        #expect(await other.write([1])?.code == 28)
        #expect(await other.read(1...1).failure?.code == 28)
    }

    @Test func `a connection without references finishes its pending operations`() async throws {
        let received = Recorder<[UInt8]>()
        let server = try SocketServer { received.record($0.readAll()) }
        do {
            let connection = TransferEngine.shared.stream(to: "127.0.0.1", port: Int(server.port))
            connection.resume()
            connection.write(pattern(1_000_000), timeout: nil) { _ in }
        }
        try await received.wait { !$0.isEmpty }
        #expect(received.values == [pattern(1_000_000)])
    }
}

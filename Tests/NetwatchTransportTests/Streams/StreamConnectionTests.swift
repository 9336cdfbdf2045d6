internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Stream connections over loopback: how they are established, used and closed.
@Suite(.timeLimit(.minutes(5))) struct StreamConnectionTests {
    private func connect(to server: SocketServer, at host: String = "127.0.0.1") -> StreamConnection {
        let connection = TransferEngine.shared.stream(to: host, port: Int(server.port))
        connection.resume()
        return connection
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func `an echo server returns what is written, over IPv4 and IPv6`(address: String) async throws {
        let server = try SocketServer.echo(address: address)
        let connection = connect(to: server, at: address)
        let bytes = pattern(300_000)
        connection.write(bytes, timeout: nil) { _ in }
        connection.closeWrite()
        let read = await connection.readAll()
        #expect(read.failure == nil)
        #expect(read.bytes == bytes)
    }

    @Test func `a host name is looked up`() async throws {
        let server = try SocketServer.echo()
        let connection = connect(to: server, at: "localhost")
        #expect(await connection.write([1, 2, 3]) == nil)
        #expect(await connection.read(3...3).bytes == [1, 2, 3])
    }

    @Test func `a read returns between its minimum and its maximum`() async throws {
        let server = try SocketServer { peer in
            peer.write([1, 2])
            _ = peer.read()
            peer.write([3, 4, 5, 6])
            _ = peer.readAll()
        }
        let connection = connect(to: server)
        let results = Recorder<StreamRead>()
        connection.read(atLeast: 3, atMost: 5, timeout: nil) { results.record($0) }
        connection.read(atLeast: 1, atMost: 10, timeout: nil) { results.record($0) }
        #expect(await connection.write([0]) == nil)
        try await results.wait { $0.count == 2 }
        #expect(results.values.flatMap(\.bytes) == [1, 2, 3, 4, 5, 6])
        #expect((3...5).contains(results.values[0].bytes.count))
        #expect(results.values.allSatisfy { !$0.isAtEnd && $0.failure == nil })
    }

    @Test func `reads and writes run in order, independently of each other`() async throws {
        let server = try SocketServer.echo()
        let connection = connect(to: server)
        let order = Recorder<String>()
        for number in 0..<100 {
            connection.read(atLeast: 1, atMost: 1, timeout: nil) { order.record("r\(number):\($0.bytes)") }
        }
        for number in 0..<100 {
            connection.write([UInt8(number)], timeout: nil) { _ in order.record("w\(number)") }
        }
        try await order.wait { $0.count == 200 }
        #expect(order.values.filter { $0.hasPrefix("w") } == (0..<100).map { "w\($0)" })
        #expect(order.values.filter { $0.hasPrefix("r") } == (0..<100).map { "r\($0):[\($0)]" })
    }

    @Test func `after closing the writing side, the response can still be read`() async throws {
        let server = try SocketServer { peer in
            let bytes = peer.readAll()
            peer.write(Array("\(bytes.count) bytes".utf8))
        }
        let connection = connect(to: server)
        #expect(await connection.write(pattern(1_000_000)) == nil)
        connection.closeWrite()
        let answer = await connection.readAll()
        #expect(String(decoding: answer.bytes, as: UTF8.self) == "1000000 bytes")
        #expect(answer.failure == nil)
    }

    @Test func `writing continues after the peer has closed its writing side`() async throws {
        let received = Recorder<[UInt8]>()
        let server = try SocketServer { peer in
            peer.closeWrite()
            received.record(peer.readAll())
        }
        let connection = connect(to: server)
        let end = await connection.read(1...10)
        #expect(end.isAtEnd && end.bytes.isEmpty && end.failure == nil)
        let again = await connection.read(1...10)
        #expect(again.isAtEnd && again.failure == nil)
        #expect(await connection.write(pattern(100_000)) == nil)
        connection.closeWrite()
        try await received.wait { !$0.isEmpty }
        #expect(received.values == [pattern(100_000)])
    }

    @Test func `at the end of the stream a read may return less than its minimum`() async throws {
        let server = try SocketServer { peer in peer.write([7, 8]) }
        let read = await connect(to: server).read(10...20)
        #expect(read.bytes == [7, 8])
        #expect(read.isAtEnd)
        #expect(read.failure == nil)
    }

    @Test func `closing a side finishes earlier operations and rejects later ones`() async throws {
        let server = try SocketServer.echo()
        let connection = connect(to: server)
        let results = Recorder<Int32>()
        connection.write([1], timeout: nil) { results.record($0?.code ?? 0) }
        connection.closeWrite()
        connection.write([2], timeout: nil) { results.record($0?.code ?? 0) }
        try await results.wait { $0.count == 2 }
        #expect(results.values == [0, 43])

        let first = await connection.read(1...1)
        #expect(first.bytes == [1])
        connection.closeRead()
        let refused = await connection.read(1...1)
        #expect(refused.failure?.phase == .prepare)
        #expect(refused.failure?.message == "the stream is closed for reading")
    }

    @Test func `closing both sides ends the connection`() async throws {
        let closed = Recorder<Int>()
        let ended = Recorder<Void>()
        let server = try SocketServer { peer in closed.record(peer.readAll().count) }
        let connection = TransferEngine.shared.stream(to: "127.0.0.1", port: Int(server.port)) {
            ended.record(())
        }
        connection.resume()
        connection.write([1, 2, 3], timeout: nil) { _ in }
        connection.closeRead()
        connection.closeWrite()
        try await closed.wait { $0 == [3] }
        try await ended.wait { $0.count == 1 }
        #expect(await connection.write([1])?.phase == .prepare)
    }

    @Test func `a reset fails pending operations after the received bytes are delivered`() async throws {
        let server = try SocketServer { peer in
            peer.resetWhenClosed()
            peer.write([1, 2, 3])
            _ = peer.read()
        }
        let connection = connect(to: server)
        #expect(await connection.read(3...3).bytes == [1, 2, 3])
        connection.write([0], timeout: nil) { _ in }
        let read = await connection.read(5...10)
        #expect(read.failure?.code == 56)
        #expect(read.failure?.osErrno == ECONNRESET)
        #expect(read.failure?.phase == .response)
        #expect(read.failure?.bytesSent == 1)
        #expect(await connection.write([1])?.osErrno == ECONNRESET)
    }

    @Test func `a read that fails returns the bytes received before a reset`() async throws {
        let server = try SocketServer { peer in
            peer.resetWhenClosed()
            peer.write([1, 2, 3])
            _ = peer.read()
        }
        let connection = connect(to: server)
        connection.write([0], timeout: nil) { _ in }
        let read = await connection.read(5...10)
        #expect(read.bytes == [1, 2, 3])
        #expect(read.failure?.osErrno == ECONNRESET)
        #expect(await connection.read(1...1).bytes.isEmpty)
    }

    @Test func `writing into a reset connection fails`() async throws {
        let server = try SocketServer { peer in
            peer.resetWhenClosed()
            _ = peer.read()
        }
        let connection = connect(to: server)
        var failure: TransferFailure?
        while failure == nil { failure = await connection.write(pattern(1000)) }
        #expect(failure?.code == 55)
        #expect([ECONNRESET, EPIPE].contains(failure?.osErrno))
        #expect(failure?.phase == .request)
        #expect(await connection.read(1...1).failure == failure)
    }

    @Test func `most of fifty megabytes stay with the sender until they are read`() async throws {
        let total = 50 << 20
        let stalls = Recorder<Int>()
        let server = try SocketServer { peer in
            peer.write([UInt8](repeating: 7, count: total)) { stalls.record($0) }
        }
        let connection = connect(to: server)
        #expect(await connection.read(1...1).bytes.count == 1)
        try await stalls.wait { !$0.isEmpty }
        // By default, the kernel buffers up to 4 MiB of sent data and 6 MiB of received data per connection (tcp(7)).
        #expect(stalls.values[0] < total / 2)

        var received = 1
        while true {
            let read = await connection.read(1...30_000)
            #expect(read.bytes.count <= 30_000)
            received += read.bytes.count
            if read.isAtEnd { break }
        }
        #expect(received == total)
    }

    @Test func `a suspended connection reads, writes and finishes nothing`() async throws {
        let received = Recorder<[UInt8]>()
        let server = try SocketServer { peer in
            peer.write([1])
            received.record(peer.read())
            _ = peer.readAll()
        }
        let connection = connect(to: server)
        #expect(await connection.read(1...1).bytes == [1])
        connection.suspend()
        let results = Recorder<String>()
        connection.write([2], timeout: nil) { _ in results.record("written") }
        // The timeout of the read keeps running. When it has expired, the earlier write must still be pending.
        let read = await connection.read(1...1, timeout: .milliseconds(100))
        #expect(read.failure?.code == 28)
        #expect(results.values.isEmpty)
        #expect(received.values.isEmpty)
        connection.resume()
        try await received.wait { $0 == [[2]] }
    }

    @Test func `nothing happens before the connection is started`() async throws {
        let server = try SocketServer.echo()
        let connection = TransferEngine.shared.stream(to: "127.0.0.1", port: Int(server.port))
        #expect(await connection.read(1...1, timeout: .milliseconds(50)).failure?.phase == .prepare)
        connection.start()
        #expect(await connection.write([5]) == nil)
        #expect(await connection.read(1...1).bytes == [5])
    }

    @Test(arguments: [(-1, 5), (5, 4), (0, 0), (Int.max, Int.min)])
    func `invalid counts are rejected`(minimum: Int, maximum: Int) async throws {
        let server = try SocketServer.echo()
        let connection = connect(to: server)
        let results = Recorder<StreamRead>()
        connection.read(atLeast: minimum, atMost: maximum, timeout: nil) { results.record($0) }
        try await results.wait { $0.count == 1 }
        let failure = try #require(results.values[0].failure)
        #expect(failure.code == 43 && failure.phase == .prepare)
        #expect(failure.message.contains("\(minimum)") && failure.message.contains("\(maximum)"))
    }
}

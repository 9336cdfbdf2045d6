internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Streams, as a program uses them.
@Suite(.timeLimit(.minutes(5))) struct StreamRequestTests {
    private struct Read: Sendable {
        let data: Data?
        let isAtEnd: Bool
        let error: (any Error)?
    }

    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    private func fails(
        _ code: URLError.Code,
        at location: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Any
    ) async {
        let error = await #expect(throws: URLError.self, sourceLocation: location) { try await body() }
        #expect(error?.code == code, sourceLocation: location)
    }

    @Test func `a stream reads and writes with the functions of URLSessionStreamTask`() async throws {
        let server = try SocketServer.echo()
        let reads = Recorder<Read>()
        let writes = Recorder<String>()
        let stream = session.stream(withHostName: "localhost", port: Int(server.port))
        stream.write(Data("hello, ".utf8), timeout: 60) { writes.record("\($0 as Any?)") }
        stream.write(Data("world".utf8), timeout: 0) { writes.record("\($0 as Any?)") }
        stream.closeWrite()
        stream.readData(ofMinLength: 12, maxLength: 100, timeout: 60) { data, isAtEnd, error in
            reads.record(Read(data: data, isAtEnd: isAtEnd, error: error))
        }
        stream.readData(ofMinLength: 1, maxLength: 100, timeout: 60) { data, isAtEnd, error in
            reads.record(Read(data: data, isAtEnd: isAtEnd, error: error))
        }
        try await reads.wait { $0.count == 2 }
        try await writes.wait { $0.count == 2 }
        #expect(writes.values == ["nil", "nil"])
        #expect(reads.values[0].data == Data("hello, world".utf8))
        #expect(reads.values[0].error == nil)
        #expect(reads.values[1].data == Data())
        #expect(reads.values[1].isAtEnd)
        #expect(reads.values[1].error == nil)
    }

    @Test func `reads and writes can be awaited`() async throws {
        let server = try SocketServer.echo(address: "::1")
        let stream = session.stream(withHostName: "::1", port: Int(server.port))
        try await stream.write(Data([1, 2, 3]))
        #expect(try await stream.readData(ofMinLength: 3, maxLength: 3).data == Data([1, 2, 3]))
        stream.closeWrite()
        let end = try await stream.readData(maxLength: 10)
        #expect(end.data.isEmpty && end.isAtEnd)
    }

    @Test func `a stream that does not start immediately starts with resume or an awaited operation`()
        async throws
    {
        let server = try SocketServer.echo()
        session.startRequestsImmediately = false
        let stream = session.stream(withHostName: "127.0.0.1", port: Int(server.port))
        let errors = Recorder<(any Error)?>()
        stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0.05) { errors.record($2) }
        try await errors.wait { $0.count == 1 }
        #expect((errors.values[0] as? URLError)?.code == .timedOut)
        #expect(errors.values[0]?.transferFailure?.phase == .prepare)
        try await stream.write(Data([1]))
        #expect(try await stream.readData(maxLength: 1).data == Data([1]))

        let other = session.stream(withHostName: "127.0.0.1", port: Int(server.port))
        other.write(Data([1]), timeout: 0) { errors.record($0) }
        other.resume()
        try await errors.wait { $0.count == 2 }
        #expect(errors.values[1] == nil)
    }

    @Test func `a suspended stream neither reads nor writes until it is resumed`() async throws {
        let server = try SocketServer.echo()
        let stream = session.stream(withHostName: "127.0.0.1", port: Int(server.port))
        try await stream.write(Data([1]))
        stream.suspend()
        await #expect(throws: URLError.self) { try await stream.readData(maxLength: 1, timeout: 0.1) }
        stream.resume()
        #expect(try await stream.readData(maxLength: 1).data == Data([1]))
    }

    @Test func `cancelling a stream fails pending and later operations once each`()
        async throws
    {
        let server = try SocketServer { _ = $0.readAll() }
        let stream = session.stream(withHostName: "127.0.0.1", port: Int(server.port))
        try await stream.write(Data([1]))
        let errors = Recorder<URLError.Code?>()
        for _ in 0..<3 {
            stream.readData(ofMinLength: 1, maxLength: 1, timeout: 60) { data, _, error in
                errors.record(data == nil ? (error as? URLError)?.code : nil)
            }
        }
        stream.cancel()
        stream.cancel()
        stream.write(Data([1]), timeout: 0) { errors.record(($0 as? URLError)?.code) }
        try await errors.wait { $0.count == 4 }
        await fails(.cancelled) { try await stream.readData(maxLength: 1) }
        #expect(errors.values == [.cancelled, .cancelled, .cancelled, .cancelled])
    }

    @Test func `releasing a session ends its streams`() async throws {
        let closed = Recorder<Void>()
        let server = try SocketServer { peer in
            _ = peer.readAll()
            closed.record(())
        }
        var session: SessionManager? = SessionManager(engine: try TransferEngine())
        let stream = try #require(session?.stream(withHostName: "127.0.0.1", port: Int(server.port)))
        try await stream.write(Data([1]))
        let errors = Recorder<(any Error)?>()
        stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { errors.record($2) }
        session = nil
        try await errors.wait { $0.count == 1 }
        try await closed.wait { $0.count == 1 }
        #expect(throws: AFError.self) { try errors.values[0].map { throw $0 } }
        guard case .sessionDeinitialized = errors.values[0] as? AFError else {
            Issue.record("\(errors.values)")
            return
        }
    }

    @Test func `a session retains a stream until it has ended`() async throws {
        let closed = Recorder<Int>()
        let server = try SocketServer { peer in
            peer.closeWrite()
            closed.record(peer.readAll().count)
        }
        weak var dropped: StreamRequest?
        do {
            let stream = session.stream(withHostName: "127.0.0.1", port: Int(server.port))
            dropped = stream
            let read = try await stream.readData(maxLength: 1)
            #expect(read.isAtEnd)
            stream.write(Data(count: 1_000_000), timeout: 0) { _ in }
        }
        #expect(dropped != nil)
        dropped?.closeWrite()
        try await closed.wait { $0 == [1_000_000] }
        await waitUntilReleased { dropped }
    }

    @Test func `an unreachable server fails with a URLError and the errno`() async throws {
        let port = try RefusingPort()
        let refused = session.stream(withHostName: "127.0.0.1", port: Int(port.port))
        let error = await #expect(throws: URLError.self) { try await refused.write(Data([1])) }
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.transferFailure?.phase == .connect)

        let unknown = session.stream(withHostName: "unknown.invalid", port: 80)
        await fails(.cannotFindHost) { try await unknown.write(Data([1])) }

        let port0 = session.stream(withHostName: "127.0.0.1", port: 0)
        let bad = await #expect(throws: URLError.self) { try await port0.write(Data([1])) }
        #expect(bad?.code == .badURL)
        #expect(bad?.transferFailure?.message == "port 0 is not between 1 and 65535")
    }

    @Test func `a lost connection fails with networkConnectionLost and the received bytes`() async throws {
        let server = try SocketServer { peer in
            peer.resetWhenClosed()
            peer.write([1, 2, 3])
            _ = peer.read()
        }
        let stream = session.stream(withHostName: "127.0.0.1", port: Int(server.port))
        let reads = Recorder<Read>()
        stream.readData(ofMinLength: 5, maxLength: 5, timeout: 0) { data, isAtEnd, error in
            reads.record(Read(data: data, isAtEnd: isAtEnd, error: error))
        }
        stream.write(Data([1]), timeout: 0) { _ in }
        try await reads.wait { $0.count == 1 }
        #expect(reads.values[0].data == Data([1, 2, 3]))
        #expect((reads.values[0].error as? URLError)?.code == .networkConnectionLost)
    }

    @Test func `cancelling a task cancels its read, and the next read returns its bytes`() async throws {
        let server = try SocketServer { peer in
            peer.write([1, 2])
            _ = peer.readAll()
        }
        let stream = session.stream(withHostName: "127.0.0.1", port: Int(server.port))
        let waiting = Task.immediate { try await stream.readData(ofMinLength: 3, maxLength: 10) }
        waiting.cancel()
        await fails(.cancelled) { try await waiting.value }
        let cancelledBefore = Task {
            await waitForCancellation()
            return try await stream.readData(maxLength: 10)
        }
        cancelledBefore.cancel()
        await fails(.cancelled) { try await cancelledBefore.value }
        #expect(try await stream.readData(ofMinLength: 2, maxLength: 2).data == Data([1, 2]))
    }

    @Test func `a session with an unsupported configuration or a unix socket refuses streams`() async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = ["HTTPEnable": 1]
        for session in [SessionManager(configuration: configuration), SessionManager(unixSocketPath: "/x")] {
            let stream = session.stream(withHostName: "127.0.0.1", port: 80)
            let error = await #expect(throws: AFError.self) { try await stream.write(Data([1])) }
            guard case .sessionConfigurationRefused = error else {
                Issue.record("\(error as Any?)")
                return
            }
        }
    }

    @Test func `the default session creates streams`() async throws {
        let server = try SocketServer.echo()
        let made = stream(withHostName: "127.0.0.1", port: Int(server.port))
        try await made.write(Data([1]))
        #expect(try await made.readData(maxLength: 1).data == Data([1]))
        made.cancel()
    }
}

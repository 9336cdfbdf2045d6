internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import OfflineQueue
internal import Testing

/// Spooled bodies that are sent to a server.
@Suite(.timeLimit(.minutes(5))) struct SpooledSendingTests {
    private static let key = QueueRequest.Header(name: "Idempotency-Key", value: "k")

    private let scratch: ScratchDirectory
    private let spool: BodySpool
    /// The sender has its own engine. libcurl keeps few idle connections, and connections of other tests would evict
    /// those of this sender.
    private let sender: SessionSender

    init() async throws {
        scratch = try ScratchDirectory()
        spool = try await BodySpool.opening(scratch.file("spool"))
        sender = SessionSender(session: SessionManager(engine: try TransferEngine()))
    }

    private func attempt(
        _ body: OpenedBody,
        to server: ScriptedServer,
        headers: [QueueRequest.Header] = [key]
    ) -> Attempt {
        Attempt(
            id: "1",
            method: "POST",
            url: "\(server.url)/",
            headers: headers,
            body: .file(body),
            mayBeSentTwice: !headers.isEmpty
        )
    }

    private static func status(_ outcome: AttemptOutcome) -> Int? {
        if case .response(let status, _, _, _) = outcome { status } else { nil }
    }

    private static func code(_ outcome: AttemptOutcome) -> CInt? {
        if case .failure(let failure) = outcome { failure.code } else { nil }
    }

    @Test(arguments: [0, 1, 65_537, 5 << 20])
    func `a body arrives unchanged, with its Content-Length`(count: Int) async throws {
        let server = try ScriptedServer()
        let bytes = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        let body = try await spool.open(spool.store(bytes))
        #expect(Self.status(await sender.send(attempt(body, to: server))) == 200)
        let request = try #require(server.requests.first)
        #expect(Data(request.body) == bytes)
        #expect(request.values(of: "Content-Length") == ["\(count)"])
        #expect(request.values(of: "Transfer-Encoding").isEmpty)
    }

    @Test func `a truncated body file is not sent`() async throws {
        let body = try await spool.store(Data(count: 100_000))
        truncate(scratch.file("spool/\(body.name)"), 99_999)
        await #expect(throws: SpooledBodyFault.changed("it has 99999 bytes instead of 100000")) {
            try await spool.open(body)
        }
    }

    @Test(arguments: [99_999, 100_001])
    func `a body that becomes shorter or longer during the transfer makes the request incomplete`(size: Int)
        async throws
    {
        let server = try ScriptedServer()
        let body = try await spool.store(Data(count: 100_000))
        let opened = try await spool.open(body)
        truncate(scratch.file("spool/\(body.name)"), size)
        // After code 26 (`CURLE_READ_ERROR`) the request is retried. The next attempt finds that the body has changed.
        #expect(Self.code(await sender.send(attempt(opened, to: server))) == 26)
        await server.openConnections(atMost: 0)
        #expect(server.requests.isEmpty)
        let found = "it has \(size) bytes instead of 100000"
        #expect(await spool.verify(body) == .changed(found))
    }

    @Test func `a file that replaced the body is not sent`() async throws {
        let server = try ScriptedServer()
        let body = try await spool.store(Data("mine".utf8))
        let opened = try await spool.open(body)
        let path = scratch.file("spool/\(body.name)")
        unlink(path)
        try Data("else".utf8).write(to: URL(fileURLWithPath: path))
        #expect(Self.status(await sender.send(attempt(opened, to: server))) == 200)
        #expect(server.requests.first?.body == Array("mine".utf8))
    }

    @Test func `a body can be sent by several attempts`() async throws {
        let server = try ScriptedServer()
        let body = try await spool.open(spool.store(Data(count: 200_000)))
        for _ in 0..<3 { #expect(Self.status(await sender.send(attempt(body, to: server))) == 200) }
        #expect(server.requests.map(\.body.count) == [200_000, 200_000, 200_000])
    }

    @Test func `with a key libcurl sends the body again from its beginning over a new connection`()
        async throws
    {
        // The second request reuses the connection of the first one, and the server closes it without a response.
        let server = try ScriptedServer { $0.number == 2 ? .close : .respond("") }
        let bytes = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let body = try await spool.open(spool.store(bytes))
        for _ in 0..<2 { #expect(Self.status(await sender.send(attempt(body, to: server))) == 200) }
        let requests = server.requests
        #expect(requests.map(\.connection) == [1, 1, 2])
        for request in requests {
            #expect(Data(request.body) == bytes)
            #expect(request.values(of: "Idempotency-Key") == ["k"])
        }
    }

    @Test func `without a key the body is sent once, over a new connection`() async throws {
        let server = try ScriptedServer { $0.number == 2 ? .close : .respond("") }
        let body = try await spool.open(spool.store(Data(count: 300_000)))
        #expect(Self.status(await sender.send(attempt(body, to: server, headers: []))) == 200)
        #expect(Self.code(await sender.send(attempt(body, to: server, headers: []))) == 52)
        #expect(server.requests.map(\.connection) == [1, 2])
    }
}

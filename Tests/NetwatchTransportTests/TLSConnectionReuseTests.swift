internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The reuse of HTTP/1.1 connections over TLS, on which the server sends data between two requests.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct TLSConnectionReuseTests {
    /// The argument of openssl-s_server(1) for the TLS version.
    enum Version: String, CaseIterable {
        case tls12 = "-tls1_2"
        case tls13 = "-tls1_3"
    }

    private let authority: TestAuthority
    private let engine: TransferEngine

    init() throws {
        authority = try TestAuthority.shared()
        engine = try TransferEngine(resolver: .answering("127.0.0.1"))
    }

    private func server(_ version: Version, _ options: String...) async throws -> TLSTerminal {
        let certificate = try authority.server("reuse.test")
        return try await TLSTerminal(authority, certificate, options: [version.rawValue] + options)
    }

    private func request(_ server: TLSTerminal) throws -> TransferRequest {
        var request = TransferRequest(url: "https://reuse.test:\(server.port)/")
        request.trust.anchors = .only(pem: try bytes(ofFileAt: authority.root))
        return request
    }

    private func bytes(ofFileAt path: String) throws -> [UInt8] {
        let reader = try FileReader(path: path)
        return try [UInt8](unsafeUninitializedCapacity: Int(reader.length)) { buffer, count in
            count = try reader.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    private static func head(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
    }

    private static func response(_ body: String) -> String { head(body) + body }

    private func start(_ request: TransferRequest) -> TransferRecorder {
        let recorder = TransferRecorder()
        engine.start(request) { recorder.deliver($0) }
        return recorder
    }

    /// Waits until the server has received `count` requests, and sends the response to the last one.
    ///
    /// - Parameter recorder: The transfer of the last request.
    private func answer(
        _ recorder: TransferRecorder,
        _ body: String,
        from server: TLSTerminal,
        request count: Int
    ) async throws -> TransferRecorder.Record {
        try await server.requests(atLeast: count)
        try server.send(Self.response(body))
        return await recorder.end()
    }

    @Test(arguments: Version.allCases)
    func `a response on an idle TLS connection closes the connection`(version: Version) async throws {
        let server = try await server(version)
        let request = try request(server)
        #expect(try await answer(start(request), "first", from: server, request: 1).text == "first")
        try server.send(Self.response("stray"))
        try await server.endedConnections(atLeast: 1)
        let second = try await answer(start(request), "second", from: server, request: 2)
        #expect(second.text == "second")
        #expect(second.metrics?.reusedConnection == false)
    }

    @Test(arguments: Version.allCases)
    func `a response that arrives over TLS just before the request is not used for it`(
        version: Version
    ) async throws {
        let server = try await server(version)
        let request = try request(server)
        #expect(try await answer(start(request), "first", from: server, request: 1).text == "first")
        let recorder = engine.start(request, to: server.port) {
            #expect(throws: Never.self) { try server.send(Self.response("stray")) }
        }
        let second = try await answer(recorder, "second", from: server, request: 2)
        #expect(second.text == "second")
        #expect(second.metrics?.reusedConnection == false)
    }

    /// libcurl reads no more than the rest of the body. So OpenSSL keeps the end of the record, and the socket has
    /// nothing to read.
    @Test(arguments: Version.allCases)
    func `a response in the TLS record of an earlier one is not used for the next request`(
        version: Version
    ) async throws {
        let server = try await server(version)
        let request = try request(server)
        let recorder = start(request)
        try await server.requests(atLeast: 1)
        // In its own record: libcurl reads as much as it can until it knows the length of the body.
        try server.send(Self.head("first"))
        await recorder.wait { !$0.heads.isEmpty || !$0.ends.isEmpty }
        try server.send("first" + Self.response("stray"))
        #expect(await recorder.end().text == "first")
        let second = try await answer(start(request), "second", from: server, request: 2)
        #expect(second.text == "second")
        #expect(second.metrics?.reusedConnection == false)
    }

    @Test(arguments: Version.allCases)
    func `a TLS connection is reused in spite of session tickets`(version: Version) async throws {
        let server = try await server(version, "-num_tickets", "8")
        let request = try request(server)
        for number in 1...3 {
            let record = try await answer(start(request), "\(number)", from: server, request: number)
            #expect(record.text == "\(number)")
            #expect(record.metrics?.reusedConnection == (number > 1))
        }
    }
}

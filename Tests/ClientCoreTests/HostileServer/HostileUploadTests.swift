internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Servers that respond before they have read the body, or never read it.
@Suite(.timeLimit(.minutes(5))) struct HostileUploadTests {
    /// Reads the head of a request, and any bytes that arrive with it. Responds if the path is `/kind`. Returns whether
    /// it is.
    private static func isKind(_ peer: SocketPeer) -> Bool {
        let head = String(decoding: peer.read(), as: UTF8.self)
        guard head.hasPrefix("GET /kind") else { return false }
        peer.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".utf8))
        return true
    }

    private func run(
        _ bytes: Int,
        totalTimeout: Int = 20_000,
        _ play: @escaping @Sendable (SocketPeer) -> Void
    ) async throws -> HostileOutcome {
        let server = try SocketServer { peer in if !Self.isKind(peer) { play(peer) } }
        let url = "http://127.0.0.1:\(server.port)"
        var options = HostileOptions(url: "\(url)/hostile", warmUpURL: "\(url)/kind")
        options.kind = .upload(bytes)
        options.totalTimeout = totalTimeout
        let report = try await HostileServer.run(options)
        report.checkProcess()
        return try #require(report.outcomes.first)
    }

    @Test func `a rejection that arrives before the body was sent is the response`() async throws {
        let outcome = try await run(5 << 20) { peer in
            peer.write(Array("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno".utf8))
            peer.waitWithoutReading()
        }
        #expect(outcome.error == nil, "\(outcome)")
        #expect(outcome.status == 413)
        #expect(outcome.byteCount == 2)
    }

    @Test
    func `a response before the body, followed by the end of the connection, is an error with that response`()
        async throws
    {
        let outcome = try await run(5 << 20) { peer in
            peer.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
            // The kernel resets the connection instead of closing it, because there are unread bytes.
        }
        #expect(outcome.error == "URLError \(URLError.Code.networkConnectionLost.rawValue)", "\(outcome)")
        // The phase depends on what comes first: the response's head, or the reset while the body is still being sent.
        #expect(["request", "response"].contains(outcome.phase))
    }

    @Test func `an upload to a server that does not read times out`() async throws {
        let outcome = try await run(10 << 20, totalTimeout: 10_000) { $0.waitWithoutReading() }
        #expect(outcome.error == "URLError \(URLError.Code.timedOut.rawValue)", "\(outcome)")
        #expect(outcome.transferCode == 28)
        #expect(outcome.phase == "request")
    }
}

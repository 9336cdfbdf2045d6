import ClientCore
import Foundation
import NetwatchTestSupport
import Testing

/// The guides' statement that large bodies do not have to fit in memory.
@Suite(.timeLimit(.minutes(5))) struct LargeTransferTests {
    private let sessionManager = SessionManager(configuration: .ephemeral)

    @Test func `a slow consumer slows the server down`() async throws {
        let piece = [UInt8](repeating: 7, count: 1 << 20)
        let server = try ScriptedServer { _ in
            let body = (0..<50).reduce(ScriptedServer.Action.close) { rest, _ in .send(piece, then: rest) }
            return .send("HTTP/1.1 200 OK\r\n\r\n", then: body)
        }
        let (gate, pieces, ends) = (Gate(), Recorder<Int>(), Recorder<String>())
        let request = sessionManager.request(server.url).stream { data in
            pieces.record(data.count)
            if pieces.values.count == 1 { gate.wait() }
        }
        try await pieces.wait { !$0.isEmpty }
        let sending = Task {
            await server.openConnections(atMost: 0)
            ends.record("server")
        }
        // Enough time for the server to send everything, if the client did not slow it down.
        try? await ends.wait(timeout: .seconds(2)) { !$0.isEmpty }
        ends.record("consumer")
        gate.open()
        let response = await once { request.response(completionHandler: $0) }
        await sending.value
        #expect(ends.values == ["consumer", "server"])
        #expect(response.error == nil)
        #expect(response.data == nil)
        #expect(pieces.values.reduce(0, +) == 50 << 20)
    }
}

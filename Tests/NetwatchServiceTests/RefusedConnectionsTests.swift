internal import Glibc
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite struct RefusedConnectionsTests {
    private let refusal = RefusedConnections.Refusal(
        caller: Caller(user: 60_001, access: .none),
        reason: .noAccess
    )
    private let start = ContinuousClock.now

    /// Refuses a new connection, and returns the client's end.
    private func refuse(
        _ connections: inout RefusedConnections,
        isKept: Bool = true
    ) throws -> FileDescriptor {
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
        let response = ControlResponse(.forbidden("no access")).lastMessage
        connections.refuse(ends[1], refusal, with: response, isKept: isKept, now: start)
        return FileDescriptor(owning: ends[0])
    }

    /// Sends a byte. Returns `false` if the server's end is closed.
    private func canSend(_ client: borrowing FileDescriptor) -> Bool {
        send(client.rawValue, [0], 1, CInt(MSG_NOSIGNAL)) == 1
    }

    private func received(_ client: borrowing FileDescriptor) -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(client.rawValue, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    @Test func `a client can still send its request before it reads the response`() throws {
        var connections = RefusedConnections(limit: 4)
        let client = try refuse(&connections)
        let isSent = canSend(client)
        let (response, end) = (received(client), received(client))
        #expect(isSent && response.hasPrefix("HTTP/1.1 403 Forbidden\r\n") && end == "")
        #expect(response.contains("connection: close\r\n") && response.contains(#""detail":"no access""#))
        connections.closeOld(now: start + .milliseconds(999))
        let isKept = canSend(client)
        connections.closeOld(now: start + .seconds(1))
        let isClosed = !canSend(client)
        #expect(isKept && isClosed)
    }

    @Test func `only the latest connections are kept, and none without a spare descriptor`() throws {
        var connections = RefusedConnections(limit: 1)
        let first = try refuse(&connections)
        let second = try refuse(&connections)
        let short = try refuse(&connections, isKept: false)
        let states = [canSend(first), canSend(second), canSend(short)]
        #expect(states == [false, true, false])
        let response = received(short)
        #expect(response.hasPrefix("HTTP/1.1 403 "))
        connections.closeAll()
        let isOpen = canSend(second)
        #expect(!isOpen)
    }

    @Test func `a response is kept for further connections, but not for longer than a second`() throws {
        var connections = RefusedConnections(limit: 4)
        let before = connections.response(to: refusal)
        _ = try refuse(&connections)
        let after = connections.response(to: refusal)
        connections.closeOld(now: start)
        let later = connections.response(to: refusal)
        #expect(before == nil && later == nil && after?.starts(with: Array("HTTP/1.1 403 ".utf8)) == true)
    }
}

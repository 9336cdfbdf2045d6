internal import NIOCore
internal import NIOHTTP1
internal import Testing

@testable internal import NetwatchService

@Suite struct ControlConnectionTests {
    private typealias Event = ControlConnection.Event

    private let peer = PeerCredentials(pid: 1, uid: 2, gid: 3)
    private let answer = ControlResponse(status: .ok)

    private func opened(_ limits: ControlServer.Limits = .init()) -> ControlConnection {
        var connection = ControlConnection(peer: peer, limits: limits)
        _ = connection.receive(.opened)
        return connection
    }

    private func head(_ uri: String = "/", _ headers: HTTPHeaders = [:]) -> Event {
        .input(.part(.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: uri, headers: headers))))
    }

    private let end = Event.input(.part(.end(nil)))

    /// The names of all actions that a row of events causes.
    private func trace(_ connection: inout ControlConnection, _ events: Event...) -> [String] {
        events.flatMap { connection.receive($0) }.map(\.name)
    }

    @Test func `the header deadline starts with the first byte and not again`() {
        var connection = opened()
        #expect(trace(&connection, .bytesArrived, .bytesArrived, .bytesArrived) == ["arm head"])
        #expect(trace(&connection, head(), end) == ["arm body", "disarm", "handle"])
    }

    @Test func `nothing is read while a request is served or its response is on the way`() {
        var connection = opened()
        #expect(connection.wantsInput)
        _ = trace(&connection, head(), end)
        #expect(!connection.wantsInput)
        _ = trace(&connection, .answered(answer))
        #expect(!connection.wantsInput)
        #expect(trace(&connection, .flushed) == ["arm idle"])
        #expect(connection.wantsInput)
    }

    @Test func `what comes while a request is served waits for its response`() {
        var connection = opened()
        _ = trace(&connection, head(), end)
        #expect(trace(&connection, head("/next"), end, .input(.end)) == [])
        #expect(trace(&connection, .answered(answer)) == ["arm response", "respond"])
        #expect(trace(&connection, .flushed) == ["arm idle", "arm body", "disarm", "handle"])
        _ = trace(&connection, .answered(answer))
        #expect(trace(&connection, .flushed) == ["arm idle", "disarm", "close"])
    }

    @Test func `a stop closes what waits and lets what is served say that it closes`() {
        var idle = opened()
        #expect(trace(&idle, .stop) == ["disarm", "close"])
        var serving = opened()
        _ = trace(&serving, head(), end)
        #expect(trace(&serving, .stop) == [])
        #expect(trace(&serving, .answered(answer)) == ["arm response", "respond and close"])
        #expect(trace(&serving, .flushed) == ["arm linger", "close output"])
        #expect(trace(&serving, .input(.end)) == ["disarm", "close"])
    }

    @Test func `nothing happens after the connection closed`() {
        var connection = opened()
        _ = trace(&connection, head(), end)
        #expect(trace(&connection, .closed) == ["disarm"])
        #expect(trace(&connection, .answered(answer), .flushed, .deadlinePassed, .stop, head()) == [])
        #expect(!connection.wantsInput)
    }

    @Test func `a client that waits for leave to send gets it only for a body that fits`() {
        var limits = ControlServer.Limits()
        limits.bodyBytes = 10
        var fitting = opened(limits)
        let fits = head("/", ["expect": "100-continue", "content-length": "10"])
        #expect(trace(&fitting, fits) == ["arm body", "continue"])
        var refusing = opened(limits)
        let exceeds = head("/", ["expect": "100-continue", "content-length": "11"])
        #expect(trace(&refusing, exceeds) == ["arm response", "respond and close"])
    }

    @Test(arguments: [
        ("/a/b", "/a/b", 0), ("/a%20b?", "/a b", 0), ("http://localhost/a?b=c", "/a", 1), ("/?&&a", "/", 1),
    ])
    func `a target is taken apart`(_ text: String, _ path: String, _ items: Int) {
        #expect(RequestTarget(text)?.path == path)
        #expect(RequestTarget(text)?.query.count == items)
    }

    @Test(arguments: ["", "*", "a", "http://localhost", "/%", "/%4", "/%gg", "/%00", "/%ff", "/?%c3"])
    func `a target that is no path or badly encoded is refused`(_ text: String) {
        #expect(RequestTarget(text) == nil)
    }
}

extension ControlConnection.Action {
    fileprivate var name: String {
        switch self {
        case .arm(let deadline): "arm \(deadline)"
        case .disarm: "disarm"
        case .sendContinue: "continue"
        case .handle: "handle"
        case .respond(let reply): reply.closes ? "respond and close" : "respond"
        case .closeOutput: "close output"
        case .close: "close"
        }
    }
}

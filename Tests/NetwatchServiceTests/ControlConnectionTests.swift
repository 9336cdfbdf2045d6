internal import NIOCore
internal import NIOHTTP1
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct ControlConnectionTests {
    private typealias Event = ControlConnection.Event

    private let peer = PeerCredentials(pid: 1, uid: 2, gid: 3)
    private let answer = ControlResponse(status: .ok)

    private func opened(_ limits: ControlServer.Limits = .init()) -> ControlConnection {
        var connection = ControlConnection(peer: peer, limits: limits) { _, target in
            target.path == "/wait" ? .wait : .call
        }
        _ = connection.receive(.opened)
        return connection
    }

    /// Returns a connection that has a slot and whose request is being handled.
    private func serving() -> ControlConnection {
        var connection = opened()
        #expect(trace(&connection, head(), end) == ["enter call"])
        #expect(trace(&connection, .admitted) == ["disarm", "handle"])
        return connection
    }

    private func head(
        _ uri: String = "/",
        _ headers: HTTPHeaders = [:],
        method: HTTPMethod = .GET
    ) -> Event {
        .input(.part(.head(HTTPRequestHead(version: .http1_1, method: method, uri: uri, headers: headers))))
    }

    private let end = Event.input(.part(.end(nil)))

    /// The names of all actions that a sequence of events causes.
    private func trace(_ connection: inout ControlConnection, _ events: Event...) -> [String] {
        events.flatMap { connection.receive($0) }.map(\.name)
    }

    @Test func `the first header deadline starts when the connection is accepted`() {
        var connection = opened()
        #expect(trace(&connection, .bytesArrived, .bytesArrived, .bytesArrived) == [])
        #expect(trace(&connection, head(), end) == ["enter call"])
        #expect(trace(&connection, .admitted) == ["disarm", "handle"])
        _ = trace(&connection, .responded(answer), .flushed)
        #expect(trace(&connection, .bytesArrived, .bytesArrived) == ["arm head"])
    }

    @Test func `a connection requests a slot when its request is complete`() {
        var connection = opened()
        #expect(connection.stage == .arriving)
        _ = trace(&connection, .bytesArrived, head("/wait", ["content-length": "10"]))
        #expect(connection.stage == .arriving)
        #expect(trace(&connection, end) == ["enter wait"])
        #expect(connection.stage == nil)
        _ = trace(&connection, .admitted)
        #expect(connection.stage == nil)
        _ = trace(&connection, .responded(ControlResponse(status: .ok, body: [1, 2, 3])))
        #expect(connection.stage == .responding(bytes: 3, isRepeatable: true))
        _ = trace(&connection, .flushed)
        #expect(connection.stage == .idle)
    }

    @Test(arguments: [["content-length": "65537"], ["transfer-encoding": "chunked"]] as [HTTPHeaders])
    func `a long body, or one of unknown length, needs a slot before it is read`(headers: HTTPHeaders) {
        var connection = opened()
        #expect(trace(&connection, .bytesArrived, head("/wait", headers)) == ["enter upload"])
        #expect(connection.stage == nil)
        #expect(trace(&connection, .admitted) == ["arm body"])
        #expect(connection.stage == nil)
        let body = Event.input(.part(.body(ByteBuffer(bytes: [1, 2, 3]))))
        #expect(trace(&connection, body, end) == ["enter wait with 3 bytes"], "its own class")
        #expect(connection.stage == nil)
        #expect(trace(&connection, .admitted) == ["disarm", "handle"])
    }

    @Test func `a complete upload without a slot is rejected, and the connection is kept`() {
        var connection = opened()
        _ = trace(&connection, head("/", ["content-length": "65537"]), .admitted, end)
        #expect(trace(&connection, .refused(.busy(.call, .all, .init()))) == ["arm response", "respond"])
        #expect(trace(&connection, .flushed) == ["arm idle"])
    }

    @Test func `responses to changes are not repeatable, rejections are`() {
        var connection = opened()
        _ = trace(&connection, head("/", method: .POST), end, .admitted, .responded(answer))
        #expect(connection.stage == .responding(bytes: 0, isRepeatable: false))
        _ = trace(&connection, .flushed, head("/", method: .POST), end)
        let refusal = Problem.busy(.call, .all, .init())
        _ = trace(&connection, .refused(refusal))
        let bytes = ControlResponse(refusal).body.count
        #expect(connection.stage == .responding(bytes: bytes, isRepeatable: true))
    }

    @Test func `a connection that gets no slot is kept alive if its request was read`() {
        var call = opened()
        _ = trace(&call, head(), end)
        #expect(trace(&call, .refused(.busy(.call, .all, .init()))) == ["arm response", "respond"])
        #expect(trace(&call, .flushed) == ["arm idle"])
        var upload = opened()
        _ = trace(&upload, head("/", ["content-length": "65537"]))
        #expect(
            trace(&upload, .refused(.busy(.upload, .all, .init()))) == ["arm response", "respond and close"]
        )
        #expect(trace(&upload, .flushed) == ["arm linger", "close output"])
        #expect(upload.stage == .lingering)
    }

    // MARK: Streams

    private func streaming() -> ControlConnection {
        var connection = serving()
        var response = answer
        response.stream = ControlStream(keepAlive: []) { nil }
        #expect(trace(&connection, .responded(response)) == ["arm response", "begin stream"])
        #expect(trace(&connection, .pieceFlushed) == ["arm keepAlive", "pull"])
        return connection
    }

    @Test func `a piece of a stream is requested when the kernel has taken the previous one`() {
        var connection = streaming()
        #expect(connection.stage == nil && !connection.wantsInput, "it keeps its slot")
        #expect(trace(&connection, .piece([1, 2])) == ["arm response", "write 2"])
        #expect(trace(&connection, .pieceFlushed) == ["arm keepAlive", "pull"])
        #expect(trace(&connection, .piece(nil)) == ["arm response", "end stream"])
        #expect(trace(&connection, .flushed) == ["arm idle"])
        #expect(connection.stage == .idle)
    }

    @Test func `a stream without data sends keep-alives, and requests no second piece`() {
        var connection = streaming()
        for _ in 0..<2 {
            #expect(trace(&connection, .deadlinePassed) == ["arm response", "write keep-alive"])
            #expect(trace(&connection, .pieceFlushed) == ["arm keepAlive"])
        }
        #expect(trace(&connection, .deadlinePassed) == ["arm response", "write keep-alive"])
        #expect(trace(&connection, .piece([1])) == ["arm response", "write 1"])
        #expect(trace(&connection, .pieceFlushed) == [])
        #expect(trace(&connection, .pieceFlushed) == ["arm keepAlive", "pull"])
    }

    @Test func `a stream is closed if its client does not read in time`() {
        var connection = streaming()
        _ = trace(&connection, .piece([1]))
        #expect(trace(&connection, .deadlinePassed) == ["disarm", "close"])
    }

    @Test func `a stop ends a stream, whether it waits for a piece or for the client`() {
        var waiting = streaming()
        #expect(trace(&waiting, .stop) == ["cancel stream"])
        #expect(
            trace(&waiting, .piece(nil), .flushed) == [
                "arm response", "end stream", "arm linger", "close output",
            ]
        )
        var writing = streaming()
        _ = trace(&writing, .piece([1]), .stop)
        #expect(trace(&writing, .pieceFlushed) == ["arm response", "end stream"])
    }

    @Test func `the response to HEAD has no stream`() {
        var connection = opened()
        _ = trace(&connection, head("/", method: .HEAD), end, .admitted)
        var response = answer
        response.stream = ControlStream(keepAlive: []) { nil }
        #expect(trace(&connection, .responded(response)) == ["arm response", "respond"])
    }

    @Test func `nothing is read while a request is served or its response is sent`() {
        var connection = opened()
        #expect(connection.wantsInput)
        _ = trace(&connection, head(), end)
        #expect(!connection.wantsInput)
        _ = trace(&connection, .admitted)
        #expect(!connection.wantsInput)
        _ = trace(&connection, .responded(answer))
        #expect(!connection.wantsInput)
        #expect(trace(&connection, .flushed) == ["arm idle"])
        #expect(connection.wantsInput)
    }

    @Test func `pipelined input waits for the response`() {
        var connection = serving()
        #expect(trace(&connection, head("/next"), end, .input(.end)) == [])
        #expect(trace(&connection, .responded(answer)) == ["arm response", "respond"])
        #expect(trace(&connection, .flushed) == ["arm idle", "arm head", "enter call"])
        #expect(trace(&connection, .admitted) == ["disarm", "handle"])
        _ = trace(&connection, .responded(answer))
        #expect(trace(&connection, .flushed) == ["arm idle", "disarm", "close"])
    }

    @Test func `a pipelined upload is read once it has a slot`() {
        var connection = serving()
        let body = Event.input(.part(.body(ByteBuffer(bytes: [1, 2, 3]))))
        _ = trace(&connection, head("/next", ["transfer-encoding": "chunked"]), body, end, .responded(answer))
        #expect(trace(&connection, .flushed) == ["arm idle", "enter upload"])
        #expect(trace(&connection, .admitted) == ["arm body", "enter call with 3 bytes"])
        #expect(trace(&connection, .admitted) == ["disarm", "handle"])
    }

    @Test func `a stop closes waiting connections and finishes served requests with Connection: close`() {
        var idle = opened()
        #expect(trace(&idle, .stop) == ["disarm", "close"])
        var serving = serving()
        #expect(trace(&serving, .stop) == [])
        #expect(trace(&serving, .responded(answer)) == ["arm response", "respond and close"])
        #expect(trace(&serving, .flushed) == ["arm linger", "close output"])
        #expect(trace(&serving, .input(.end)) == ["disarm", "close"])
    }

    @Test func `nothing happens after the connection closed`() {
        var connection = serving()
        #expect(trace(&connection, .closed) == ["disarm"])
        #expect(trace(&connection, .responded(answer), .flushed, .deadlinePassed, .stop, head()) == [])
        #expect(!connection.wantsInput)
    }

    @Test func `Expect: 100-continue gets 100 Continue only for a body that fits`() {
        var limits = ControlServer.Limits()
        limits.bodyBytes = 100_000
        var fitting = opened(limits)
        let fits = head("/", ["expect": "100-continue", "content-length": "10"])
        #expect(trace(&fitting, fits) == ["continue"])
        var long = opened(limits)
        _ = trace(&long, head("/", ["expect": "100-continue", "content-length": "100000"]))
        #expect(trace(&long, .admitted) == ["arm body", "continue"])
        var refusing = opened(limits)
        let exceeds = head("/", ["expect": "100-continue", "content-length": "100001"])
        #expect(trace(&refusing, exceeds) == ["arm response", "respond and close"])
    }

    @Test(arguments: [
        ("/a/b", "/a/b", 0), ("/a%20b?", "/a b", 0), ("http://localhost/a?b=c", "/a", 1), ("/?&&a", "/", 1),
    ])
    func `a target is parsed`(_ text: String, _ path: String, _ items: Int) {
        #expect(RequestTarget(text)?.path == path)
        #expect(RequestTarget(text)?.query.count == items)
    }

    @Test(arguments: ["", "*", "a", "http://localhost", "/%", "/%4", "/%gg", "/%00", "/%ff", "/?%c3"])
    func `an invalid target is rejected`(_ text: String) {
        #expect(RequestTarget(text) == nil)
    }
}

extension ControlConnection.Action {
    fileprivate var name: String {
        switch self {
        case .arm(let deadline): "arm \(deadline)"
        case .disarm: "disarm"
        case .sendContinue: "continue"
        case .requestSlot(let connectionClass, 0): "enter \(connectionClass)"
        case .requestSlot(let connectionClass, let bytes): "enter \(connectionClass) with \(bytes) bytes"
        case .handle: "handle"
        case .respond(let reply): reply.closes ? "respond and close" : "respond"
        case .beginStream(let reply): reply.closes ? "begin stream and close" : "begin stream"
        case .pull: "pull"
        case .write(let bytes): "write \(bytes.count)"
        case .writeKeepAlive: "write keep-alive"
        case .cancelStream: "cancel stream"
        case .endStream: "end stream"
        case .closeOutput: "close output"
        case .close: "close"
        }
    }
}

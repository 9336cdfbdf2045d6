internal import NIOCore
internal import NIOHTTP1

/// One connection's conversation, as a value: takes what happened, returns what to do.
///
/// One request is served at a time. What a client pipelines behind it waits in `backlog`, which is bounded
/// because nothing is read while a request is served.
struct ControlConnection {
    /// What the one timer of a connection measures.
    enum Deadline: Hashable {
        case head, body, response, idle, linger
    }

    enum Event {
        case opened
        /// Raw bytes came in, before they mean anything.
        case bytesArrived
        case input(Input)
        case answered(ControlResponse)
        /// The response was handed to the kernel.
        case flushed
        case deadlinePassed
        /// The server stops: finish what is in flight.
        case stop
        case closed
    }

    /// What the client sent.
    enum Input {
        case part(HTTPServerRequestPart)
        case malformed(HTTPParserError)
        /// The client closed its side.
        case end
    }

    enum Action {
        /// Replaces the deadline armed before.
        case arm(Deadline)
        case disarm
        case sendContinue
        case handle(ControlRequest)
        case respond(Reply)
        /// Tells the client that nothing follows, while its bytes are still read.
        case closeOutput
        case close
    }

    struct Reply {
        let response: ControlResponse
        /// Whether the client asked with HEAD: the length is told, the body is not sent.
        let omitsBody: Bool
        let closes: Bool
    }

    private enum Phase {
        case awaitingRequest
        case readingHead
        case readingBody(HTTPRequestHead, RequestTarget, [UInt8])
        case handling(HTTPMethod)
        case responding
        /// The last response is out; input is thrown away until the client closes.
        case lingering
        case closed
    }

    private let limits: ControlServer.Limits
    private let peer: PeerCredentials
    private var phase = Phase.awaitingRequest
    private var keepsAlive = true
    private var backlog: [Input] = []

    init(peer: PeerCredentials, limits: ControlServer.Limits) {
        self.peer = peer
        self.limits = limits
    }

    /// Whether the shell should read from the socket.
    var wantsInput: Bool {
        switch phase {
        case .awaitingRequest, .readingHead, .readingBody, .lingering: true
        case .handling, .responding, .closed: false
        }
    }

    mutating func receive(_ event: Event) -> [Action] {
        switch event {
        case .opened: [.arm(.head)]
        case .bytesArrived: bytesArrived()
        case .input(let input): received(input)
        case .answered(let response): answered(response)
        case .flushed: flushed()
        case .deadlinePassed: deadlinePassed()
        case .stop: stop()
        case .closed: closed()
        }
    }
}

// MARK: - Input

extension ControlConnection {
    private mutating func bytesArrived() -> [Action] {
        guard case .awaitingRequest = phase else { return [] }
        phase = .readingHead
        return [.arm(.head)]
    }

    private mutating func received(_ input: Input) -> [Action] {
        switch phase {
        case .handling, .responding:
            backlog.append(input)
            return []
        case .lingering:
            guard case .end = input else { return [] }
            return close()
        case .closed:
            return []
        case .awaitingRequest, .readingHead, .readingBody:
            return requested(input)
        }
    }

    private mutating func requested(_ input: Input) -> [Action] {
        switch input {
        case .part(.head(let head)): began(head)
        case .part(.body(let bytes)): continued(bytes)
        case .part(.end): completed()
        case .malformed(.headerOverflow): refuse(.headersTooLarge(limits))
        case .malformed: refuse(.malformed)
        case .end: close()
        }
    }

    private mutating func began(_ head: HTTPRequestHead) -> [Action] {
        // After an upgrade or a CONNECT the decoder stops; an HTTP/1.0 client would need the old header.
        keepsAlive =
            keepsAlive && head.isKeepAlive && head.version == .http1_1
            && head.method != .CONNECT && !head.headers.contains(name: "upgrade")
        guard let target = RequestTarget(head.uri) else { return refuse(.malformedTarget) }
        let length = head.headers.first(name: "content-length").map { Int($0) ?? .max } ?? 0
        guard length <= limits.bodyBytes else { return refuse(.bodyTooLarge(limits)) }
        phase = .readingBody(head, target, [])
        let expectsContinue = head.headers.first(name: "expect")?.lowercased() == "100-continue"
        return expectsContinue ? [.arm(.body), .sendContinue] : [.arm(.body)]
    }

    private mutating func continued(_ bytes: ByteBuffer) -> [Action] {
        guard case .readingBody(let head, let target, var body) = phase else { return [] }
        // Two owners of `body` would copy all of it for every chunk.
        phase = .readingHead
        guard body.count + bytes.readableBytes <= limits.bodyBytes else {
            return refuse(.bodyTooLarge(limits))
        }
        body.append(contentsOf: bytes.readableBytesView)
        phase = .readingBody(head, target, body)
        return []
    }

    private mutating func completed() -> [Action] {
        guard case .readingBody(let head, let target, let body) = phase else { return [] }
        phase = .handling(head.method)
        let request = ControlRequest(
            method: head.method,
            target: target,
            headers: head.headers,
            body: body,
            peer: peer
        )
        return [.disarm, .handle(request)]
    }
}

// MARK: - Output

extension ControlConnection {
    private mutating func answered(_ response: ControlResponse) -> [Action] {
        guard case .handling(let method) = phase else { return [] }
        return respond(response, omitsBody: method == .HEAD)
    }

    /// Answers a request that will not be read to its end; what follows it cannot be understood.
    private mutating func refuse(_ problem: Problem) -> [Action] {
        keepsAlive = false
        return respond(ControlResponse(problem), omitsBody: false)
    }

    private mutating func respond(_ response: ControlResponse, omitsBody: Bool) -> [Action] {
        phase = .responding
        let reply = Reply(response: response, omitsBody: omitsBody, closes: !keepsAlive)
        return [.arm(.response), .respond(reply)]
    }

    private mutating func flushed() -> [Action] {
        guard case .responding = phase else { return [] }
        phase = keepsAlive ? .awaitingRequest : .lingering
        return (keepsAlive ? [.arm(.idle)] : [.arm(.linger), .closeOutput]) + takeUpBacklog()
    }

    private mutating func takeUpBacklog() -> [Action] {
        let inputs = backlog
        backlog = []
        return inputs.flatMap { received($0) }
    }
}

// MARK: - Ends

extension ControlConnection {
    private mutating func deadlinePassed() -> [Action] {
        switch phase {
        case .readingHead: refuse(.tooSlow("request line and headers", limits.headerDeadline))
        case .readingBody: refuse(.tooSlow("body", limits.bodyDeadline))
        case .awaitingRequest, .responding, .lingering: close()
        case .handling, .closed: []
        }
    }

    private mutating func stop() -> [Action] {
        switch phase {
        case .awaitingRequest, .readingHead:
            return close()
        case .readingBody, .handling, .responding, .lingering, .closed:
            keepsAlive = false
            return []
        }
    }

    private mutating func close() -> [Action] {
        phase = .closed
        return [.disarm, .close]
    }

    private mutating func closed() -> [Action] {
        phase = .closed
        backlog = []
        return [.disarm]
    }
}

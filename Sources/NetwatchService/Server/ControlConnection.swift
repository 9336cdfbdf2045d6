internal import NIOCore
internal import NIOHTTP1

/// The protocol state of one connection, as a value: it receives events and returns actions.
///
/// One request is served at a time. Pipelined requests wait in `backlog`, which is bounded because nothing is read
/// while a request is served.
struct ControlConnection {
    private enum Phase {
        /// Nothing has arrived yet. The header deadline is running.
        case opened
        case awaitingRequest
        case readingHead
        case readingBody
        /// A slot of a class was requested, for a complete request or for an upload of which only the headers were
        /// read.
        case awaitingSlot(isComplete: Bool)
        case handling(HTTPMethod)
        case responding(bytes: Int, isRepeatable: Bool)
        /// A response is sent in pieces. `unflushed` is the number of writes that the kernel has not taken.
        case streaming(unflushed: Int, isPulling: Bool)
        /// The last response was sent. Input is discarded until the client closes.
        case lingering
        case closed
    }

    /// The request that is being read.
    private struct Incoming {
        let head: HTTPRequestHead
        let target: RequestTarget
        let isUpload: Bool
        var body: [UInt8] = []
    }

    private let limits: ControlServer.Limits
    private let peer: PeerCredentials?
    /// Returns the class in which a complete request is served.
    private let classify: (HTTPMethod, RequestTarget) -> ConnectionClass
    /// Returns the problem of a request whose body need not be read; `nil` for others.
    private let refusal: (HTTPMethod, RequestTarget) -> Problem?
    private var phase = Phase.opened
    private var incoming: Incoming?
    private var keepsAlive = true
    private var isStopping = false
    private var backlog: [Input] = []

    init(
        peer: PeerCredentials?,
        limits: ControlServer.Limits,
        classify: @escaping (HTTPMethod, RequestTarget) -> ConnectionClass,
        refusal: @escaping (HTTPMethod, RequestTarget) -> Problem? = { _, _ in nil }
    ) {
        self.peer = peer
        self.limits = limits
        self.classify = classify
        self.refusal = refusal
    }

    /// Whether the channel handler should read from the socket.
    var wantsInput: Bool {
        switch phase {
        case .opened, .awaitingRequest, .readingHead, .readingBody, .lingering: true
        case .awaitingSlot, .handling, .responding, .streaming, .closed: false
        }
    }

    /// The connection's stage in the limiter; `nil` while it requests or holds a slot, and after it was closed.
    var stage: ConnectionLimiter.Stage? {
        switch phase {
        case .opened, .readingHead: .arriving
        case .readingBody: incoming?.isUpload == true ? nil : .arriving
        case .awaitingRequest: .idle
        case .responding(let bytes, let isRepeatable):
            .responding(bytes: bytes, isRepeatable: isRepeatable)
        case .lingering: .lingering
        case .awaitingSlot, .handling, .streaming, .closed: nil
        }
    }

    mutating func receive(_ event: Event) -> [Action] {
        switch event {
        case .opened: [.arm(.head)]
        case .bytesArrived: bytesArrived()
        case .input(let input): received(input)
        case .admitted: admitted()
        case .refused(let problem): refused(problem)
        case .responded(let response): responded(response)
        case .flushed: flushed()
        case .piece(let bytes): received(piece: bytes)
        case .pieceFlushed: pieceFlushed()
        case .deadlinePassed: deadlinePassed()
        case .stop: stop()
        case .closed: closed()
        }
    }
}

// MARK: - Input

extension ControlConnection {
    private mutating func bytesArrived() -> [Action] {
        switch phase {
        case .opened:
            // The header deadline has been running since the connection was accepted.
            phase = .readingHead
            return []
        case .awaitingRequest:
            phase = .readingHead
            return [.arm(.head)]
        default:
            return []
        }
    }

    private mutating func received(_ input: Input) -> [Action] {
        switch phase {
        case .awaitingSlot, .handling, .responding, .streaming:
            backlog.append(input)
            return []
        case .lingering:
            guard case .end = input else { return [] }
            return close()
        case .closed:
            return []
        case .opened, .awaitingRequest, .readingHead, .readingBody:
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
        // NIO's decoder stops after `Upgrade` or CONNECT. HTTP/1.0 clients would expect `Connection: keep-alive` in the
        // response, which the server does not send.
        keepsAlive =
            keepsAlive && head.isKeepAlive && head.version == .http1_1
            && head.method != .CONNECT && !head.headers.contains(name: "upgrade")
        guard let target = RequestTarget(head.uri) else { return refuse(.malformedTarget) }
        let length = head.headers.first(name: "content-length").map { Int($0) ?? .max } ?? 0
        guard length <= limits.bodyBytes else { return refuse(.bodyTooLarge(limits)) }
        let isUpload = length > limits.smallBodyBytes || head.headers.contains(name: "transfer-encoding")
        incoming = Incoming(head: head, target: target, isUpload: isUpload)
        guard isUpload else { return deadlineOfNext() + beginBody() }
        if let problem = refusal(head.method, target) { return refuse(problem) }
        phase = .awaitingSlot(isComplete: false)
        return [.requestSlot(.upload, bytes: 0)]
    }

    /// Starts the header deadline of a pipelined request. Its bytes arrived while the previous request was served.
    private func deadlineOfNext() -> [Action] {
        if case .awaitingRequest = phase { [.arm(.head)] } else { [] }
    }

    /// Starts to read the body. Only an upload has a separate deadline for the body. A small body must arrive before
    /// the header deadline.
    private mutating func beginBody() -> [Action] {
        guard let incoming else { return [] }
        phase = .readingBody
        let expectsContinue = incoming.head.headers.first(name: "expect")?.lowercased() == "100-continue"
        return (incoming.isUpload ? [.arm(.body)] : []) + (expectsContinue ? [.sendContinue] : [])
    }

    private mutating func continued(_ bytes: ByteBuffer) -> [Action] {
        guard case .readingBody = phase, let count = incoming?.body.count else { return [] }
        guard count + bytes.readableBytes <= limits.bodyBytes else { return refuse(.bodyTooLarge(limits)) }
        incoming?.body.append(contentsOf: bytes.readableBytesView)
        return []
    }

    private mutating func completed() -> [Action] {
        guard case .readingBody = phase, let incoming else { return [] }
        phase = .awaitingSlot(isComplete: true)
        return [.requestSlot(classify(incoming.head.method, incoming.target), bytes: incoming.body.count)]
    }

    private mutating func handle() -> [Action] {
        guard let incoming else { return [] }
        self.incoming = nil
        phase = .handling(incoming.head.method)
        let request = ControlRequest(
            method: incoming.head.method,
            target: incoming.target,
            headers: incoming.head.headers,
            body: incoming.body,
            peer: peer
        )
        return [.disarm, .handle(request)]
    }
}

// MARK: - Classes

extension ControlConnection {
    private mutating func admitted() -> [Action] {
        guard case .awaitingSlot(let isComplete) = phase else { return [] }
        return isComplete ? handle() : beginBody() + processBacklog()
    }

    private mutating func refused(_ problem: Problem) -> [Action] {
        guard case .awaitingSlot(let isComplete) = phase else { return [] }
        guard isComplete, let incoming else { return refuse(problem) }
        let isHead = incoming.head.method == .HEAD
        return respond(ControlResponse(problem), isRepeatable: true, omitsBody: isHead)
    }
}

// MARK: - Output

extension ControlConnection {
    private mutating func responded(_ response: ControlResponse) -> [Action] {
        guard case .handling(let method) = phase else { return [] }
        if response.stream != nil, method != .HEAD { return beginStream(response) }
        return respond(response, isRepeatable: method == .GET || method == .HEAD, omitsBody: method == .HEAD)
    }

    /// Responds to a request without reading it to its end. The connection is closed, because the bytes that follow
    /// cannot be parsed.
    private mutating func refuse(_ problem: Problem) -> [Action] {
        keepsAlive = false
        return respond(ControlResponse(problem), isRepeatable: true, omitsBody: false)
    }

    /// - Parameter isRepeatable: Whether the client can send the request again, because it changed nothing.
    private mutating func respond(
        _ response: ControlResponse,
        isRepeatable: Bool,
        omitsBody: Bool
    ) -> [Action] {
        incoming = nil
        phase = .responding(bytes: response.body.count, isRepeatable: isRepeatable)
        let reply = Reply(response: response, omitsBody: omitsBody, closes: !keepsAlive)
        return [.arm(.response), .respond(reply)]
    }

    private mutating func flushed() -> [Action] {
        guard case .responding = phase else { return [] }
        phase = keepsAlive ? .awaitingRequest : .lingering
        return (keepsAlive ? [.arm(.idle)] : [.arm(.linger), .closeOutput]) + processBacklog()
    }

    private mutating func processBacklog() -> [Action] {
        let inputs = backlog
        backlog = []
        return inputs.flatMap { received($0) }
    }
}

// MARK: - Streams

extension ControlConnection {
    private mutating func beginStream(_ response: ControlResponse) -> [Action] {
        phase = .streaming(unflushed: 1, isPulling: false)
        return [
            .arm(.response), .beginStream(Reply(response: response, omitsBody: false, closes: !keepsAlive)),
        ]
    }

    private mutating func received(piece bytes: [UInt8]?) -> [Action] {
        guard case .streaming(let unflushed, _) = phase else { return [] }
        guard let bytes else { return endStream() }
        phase = .streaming(unflushed: unflushed + 1, isPulling: false)
        return [.arm(.response), .write(bytes)]
    }

    private mutating func pieceFlushed() -> [Action] {
        guard case .streaming(let unflushed, let isPulling) = phase else { return [] }
        if isStopping, !isPulling { return endStream() }
        phase = .streaming(unflushed: unflushed - 1, isPulling: isPulling || unflushed == 1)
        guard unflushed == 1 else { return [] }
        return [.arm(.keepAlive)] + (isPulling ? [] : [.pull])
    }

    private mutating func endStream() -> [Action] {
        phase = .responding(bytes: 0, isRepeatable: true)
        return [.arm(.response), .endStream]
    }

    private mutating func keepAlive(isPulling: Bool) -> [Action] {
        phase = .streaming(unflushed: 1, isPulling: isPulling)
        return [.arm(.response), .writeKeepAlive]
    }
}

// MARK: - Deadlines and closing

extension ControlConnection {
    private mutating func deadlinePassed() -> [Action] {
        switch phase {
        case .readingHead:
            refuse(.tooSlow("request line and headers", limits.headerDeadline))
        case .readingBody:
            incoming?.isUpload == true
                ? refuse(.tooSlow("body", limits.bodyDeadline))
                : refuse(.tooSlow("request", limits.headerDeadline))
        case .opened, .awaitingRequest, .responding, .lingering:
            close()
        case .streaming(unflushed: 0, let isPulling):
            keepAlive(isPulling: isPulling)
        case .streaming:
            close()
        case .awaitingSlot, .handling, .closed:
            []
        }
    }

    private mutating func stop() -> [Action] {
        isStopping = true
        switch phase {
        case .opened, .awaitingRequest, .readingHead:
            return close()
        case .streaming:
            keepsAlive = false
            return [.cancelStream]
        case .readingBody, .awaitingSlot, .handling, .responding, .lingering, .closed:
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
        incoming = nil
        backlog = []
        return [.disarm]
    }
}

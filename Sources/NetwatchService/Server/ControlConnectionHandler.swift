internal import NIOCore
internal import NIOHTTP1

/// Performs the actions of ``ControlConnection`` on a channel. Runs on the channel's event loop.
///
/// Automatic reads are off, and this handler requests every read. While a client waits for a response or does not read
/// it, the server therefore does not read and buffer more of the client's bytes.
final class ControlConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// The user event that tells a connection that the server stops.
    struct Stop {}

    private let id: ControlConnections.ID
    private let limits: ControlServer.Limits
    private let router: ControlRouter
    private let connections: ControlConnections
    private var connection: ControlConnection
    private var stage = ConnectionLimiter.Stage.arriving
    private var deadline: Scheduled<Void>?
    private var handling: Task<Void, Never>?
    /// The rest of the response that is being sent in pieces.
    private var stream: ControlStream?

    init(
        id: ControlConnections.ID,
        peer: PeerCredentials?,
        router: ControlRouter,
        limits: ControlServer.Limits,
        connections: ControlConnections
    ) {
        self.id = id
        self.limits = limits
        self.router = router
        self.connections = connections
        connection = ControlConnection(
            peer: peer,
            limits: limits,
            classify: router.connectionClass,
            refusal: { router.refusal(of: $0, $1, from: peer) }
        )
    }

    private func process(_ event: ControlConnection.Event, _ context: ChannelHandlerContext) {
        for action in connection.receive(event) { perform(action, context) }
        guard let stage = connection.stage, stage != self.stage else { return }
        self.stage = stage
        connections.move(id, to: stage)
    }

    private func readIfWanted(_ context: ChannelHandlerContext) {
        if connection.wantsInput { context.read() }
    }
}

// MARK: - Events

extension ControlConnectionHandler {
    func channelActive(context: ChannelHandlerContext) {
        process(.opened, context)
        readIfWanted(context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        process(.input(.part(unwrapInboundIn(data))), context)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        readIfWanted(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is BytesArrived: process(.bytesArrived, context)
        case is Stop: process(.stop, context)
        case ChannelEvent.inputClosed: process(.input(.end), context)
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as HTTPParserError: process(.input(.malformed(error)), context)
        // More bytes of a malformed request, to which the server has already responded.
        case is ByteToMessageDecoderError: break
        default: context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        process(.closed, context)
        handling?.cancel()
        stream = nil
    }
}

// MARK: - Actions

extension ControlConnectionHandler {
    private func perform(_ action: ControlConnection.Action, _ context: ChannelHandlerContext) {
        switch action {
        case .arm(let kind): arm(kind, context)
        case .disarm: deadline?.cancel()
        case .sendContinue: sendContinue(context)
        case .requestSlot(let connectionClass, let bytes): requestSlot(connectionClass, bytes: bytes, context)
        case .handle(let request): handle(request, context)
        case .respond(let reply): respond(reply, context)
        case .beginStream(let reply): beginStream(reply, context)
        case .pull: pull(context)
        case .write(let bytes): write(bytes, context)
        case .writeKeepAlive: write(stream?.keepAlive ?? [], context)
        case .cancelStream: handling?.cancel()
        case .endStream: endStream(context)
        case .closeOutput: context.close(mode: .output, promise: nil)
        case .close: context.close(promise: nil)
        }
    }

    private func arm(_ kind: ControlConnection.Deadline, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        let delay = TimeAmount(limits.duration(of: kind))
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: delay) {
            self.process(.deadlinePassed, context)
            self.readIfWanted(context)
        }
    }

    private func requestSlot(_ connectionClass: ConnectionClass, bytes: Int, _ context: ChannelHandlerContext)
    {
        switch connections.requestSlot(connectionClass, id, bytes: bytes) {
        case .admitted:
            stage = .served(connectionClass)
            process(.admitted, context)
        case .full(let scope):
            process(.refused(.busy(connectionClass, scope, limits)), context)
        case .closed:
            break
        }
    }

    private func handle(_ request: ControlRequest, _ context: ChannelHandlerContext) {
        connections.use(bytes: request.body.count)
        connections.beginHandling(id)
        let router = router
        let promise = context.eventLoop.makePromise(of: ControlResponse.self)
        handling = promise.completeWithTask { await router.respond(to: request) }
        promise.futureResult.assumeIsolated().whenSuccess { response in
            // Called before the response is written, because writing it may start the handler of the next pipelined
            // request.
            self.connections.endHandling(self.id)
            self.process(.responded(response), context)
        }
    }

    private func sendContinue(_ context: ChannelHandlerContext) {
        let head = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }

    private func respond(_ reply: ControlConnection.Reply, _ context: ChannelHandlerContext) {
        connections.use(bytes: reply.response.body.count)
        context.write(wrapOutboundOut(.head(reply.head)), promise: nil)
        if !reply.omitsBody {
            let body = context.channel.allocator.buffer(bytes: reply.response.body)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        }
        finish(context)
    }

    private func finish(_ context: ChannelHandlerContext) {
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenSuccess {
            self.process(.flushed, context)
            self.readIfWanted(context)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }
}

// MARK: - Streams

extension ControlConnectionHandler {
    private func beginStream(_ reply: ControlConnection.Reply, _ context: ChannelHandlerContext) {
        stream = reply.response.stream
        context.write(wrapOutboundOut(.head(reply.head)), promise: nil)
        write(reply.response.body, context)
    }

    private func write(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        connections.use(bytes: bytes.count)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenSuccess { self.process(.pieceFlushed, context) }
        let buffer = context.channel.allocator.buffer(bytes: bytes)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(buffer))), promise: written)
    }

    private func pull(_ context: ChannelHandlerContext) {
        guard let stream else { return }
        let promise = context.eventLoop.makePromise(of: [UInt8]?.self)
        handling = promise.completeWithTask { await stream.next() }
        promise.futureResult.assumeIsolated().whenSuccess { self.process(.piece($0), context) }
    }

    private func endStream(_ context: ChannelHandlerContext) {
        stream = nil
        finish(context)
    }
}

extension ControlServer.Limits {
    fileprivate func duration(of deadline: ControlConnection.Deadline) -> Duration {
        switch deadline {
        case .head: headerDeadline
        case .body: bodyDeadline
        case .response: responseDeadline
        case .idle: idleTimeout
        case .linger: lingerDeadline
        case .keepAlive: keepAliveInterval
        }
    }
}

// MARK: - Raw bytes

/// The user event for raw bytes that have arrived.
struct BytesArrived {}

/// Reports raw bytes before the decoder receives them. The header deadline starts with the first byte, but the decoder
/// reports nothing until the headers are complete.
final class ArrivalHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.fireUserInboundEventTriggered(BytesArrived())
        context.fireChannelRead(data)
    }
}

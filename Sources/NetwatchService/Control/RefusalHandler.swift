internal import NIOCore
internal import NIOHTTP1

/// Answers a connection over the limit with 503 at once, then throws its input away until it closes.
///
/// Closing at once would make a client that is still sending fail before it reads why.
final class RefusalHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let limits: ControlServer.Limits
    private var deadline: Scheduled<Void>?

    init(limits: ControlServer.Limits) {
        self.limits = limits
    }

    func channelActive(context: ChannelHandlerContext) {
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.lingerDeadline)) {
            context.close(promise: nil)
        }
        context.writeAndFlush(wrapOutboundOut(answer(context.channel.allocator)), promise: nil)
        context.close(mode: .output, promise: nil)
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func channelReadComplete(context: ChannelHandlerContext) {
        context.read()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
    }

    private func answer(_ allocator: ByteBufferAllocator) -> ByteBuffer {
        let response = ControlResponse(.tooManyConnections(limits))
        let reply = ControlConnection.Reply(response: response, omitsBody: false, closes: true)
        var buffer = allocator.buffer(capacity: 512)
        buffer.writeString("HTTP/1.1 \(response.status.code) \(response.status.reasonPhrase)\r\n")
        for (name, value) in reply.head.headers { buffer.writeString("\(name): \(value)\r\n") }
        buffer.writeString("\r\n")
        buffer.writeBytes(response.body)
        return buffer
    }
}

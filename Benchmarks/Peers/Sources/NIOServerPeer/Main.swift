import NIOCore
import NIOHTTP1
import NIOPosix

/// An HTTP server that responds to each request with 202 and the same body, and does nothing else.
///
/// Arguments: the path of its unix socket.
@main
enum Main {
    static func main() async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(ChannelOptions.backlog, value: 256)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Responder())
                }
            }
            .bind(unixDomainSocketPath: CommandLine.arguments[1])
            .get()
        try await server.closeFuture.get()
    }
}

private final class Responder: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .end = unwrapInboundIn(data) else { return }
        let body = context.channel.allocator.buffer(string: #"{"id":"none"}"#)
        let headers: HTTPHeaders = [
            "Content-Type": "application/json", "Content-Length": "\(body.readableBytes)",
        ]
        let head = HTTPResponseHead(version: .http1_1, status: .accepted, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

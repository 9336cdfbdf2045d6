internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// The open connections of one server.
final class ControlConnections: Sendable {
    private enum Admission {
        case served, refused, dropped
    }

    private struct State {
        var served: [ObjectIdentifier: any Channel] = [:]
        /// Admitted, counted before their channels exist.
        var admitted = 0
        var refused = 0
        var isStopped = false
    }

    private let group: any EventLoopGroup
    private let router: ControlRouter
    private let limits: ControlServer.Limits
    private let state = Mutex(State())

    init(group: any EventLoopGroup, router: ControlRouter, limits: ControlServer.Limits) {
        self.group = group
        self.router = router
        self.limits = limits
    }

    /// Serves a connected descriptor, which it takes over, or refuses it when there are too many.
    func serve(_ descriptor: CInt, _ peer: PeerCredentials) {
        let admission = admit()
        guard admission != .dropped else {
            close(descriptor)
            return
        }
        let opened = bootstrap { [self] channel in
            guard admission == .served else { return try addRefusal(to: channel) }
            try addPipeline(to: channel, peer: peer)
            try register(channel)
        }.withConnectedSocket(descriptor)
        opened.flatMap(\.closeFuture).whenComplete { [self] _ in release(admission) }
    }

    /// Lets every connection finish what is in flight, and closes what is left after `grace`.
    func stop(grace: Duration) async {
        let channels = state.withLock { state in
            state.isStopped = true
            return Array(state.served.values)
        }
        for channel in channels {
            channel.pipeline.fireUserInboundEventTriggered(ControlConnectionHandler.Stop())
        }
        let loop = group.next()
        let timer = loop.scheduleTask(in: TimeAmount(grace)) {
            for channel in channels { channel.close(promise: nil) }
        }
        try? await EventLoopFuture.andAllComplete(channels.map(\.closeFuture), on: loop).get()
        timer.cancel()
    }
}

// MARK: - Counting

extension ControlConnections {
    private func admit() -> Admission {
        state.withLock { state in
            if state.isStopped { return .dropped }
            if state.admitted < limits.connections {
                state.admitted += 1
                return .served
            }
            guard state.refused < limits.refusedConnections else { return .dropped }
            state.refused += 1
            return .refused
        }
    }

    private func release(_ admission: Admission) {
        state.withLock { state in
            switch admission {
            case .served: state.admitted -= 1
            case .refused: state.refused -= 1
            case .dropped: break
            }
        }
    }

    private func register(_ channel: any Channel) throws {
        let id = ObjectIdentifier(channel)
        let isStopped = state.withLock { state in
            if !state.isStopped { state.served[id] = channel }
            return state.isStopped
        }
        if isStopped { throw ChannelError.ioOnClosedChannel }
        channel.closeFuture.whenComplete { [self] _ in
            _ = state.withLock { $0.served.removeValue(forKey: id) }
        }
    }
}

// MARK: - Pipelines

extension ControlConnections {
    private func bootstrap(
        _ initialize: @escaping @Sendable (any Channel) throws -> Void
    ) -> ClientBootstrap {
        ClientBootstrap(group: group)
            .channelOption(.autoRead, value: false)
            // A client may close its side once its request is out and still wait for the answer.
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try initialize(channel) }
            }
    }

    private func addPipeline(to channel: any Channel, peer: PeerCredentials) throws {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderListSize = limits.headerBytes
        decoding.maxHeaderFieldSize = limits.headerFieldBytes
        decoding.maxHeaderFieldCount = limits.headerFields
        let handlers: [any ChannelHandler] = [
            ArrivalHandler(),
            HTTPResponseEncoder(),
            ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: decoding)),
            ControlConnectionHandler(peer: peer, router: router, limits: limits),
        ]
        try channel.pipeline.syncOperations.addHandlers(handlers)
    }

    private func addRefusal(to channel: any Channel) throws {
        try channel.pipeline.syncOperations.addHandler(RefusalHandler(limits: limits))
    }
}

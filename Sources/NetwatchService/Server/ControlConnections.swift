internal import CNetwatchLinux
internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NetwatchEventLoop

/// The open connections of one server.
final class ControlConnections: Sendable {
    typealias ID = ConnectionLimiter.ID

    fileprivate struct State {
        var limiter: ConnectionLimiter
        var channels: [ID: any Channel] = [:]
        /// The number of connections of each user without full access.
        var users: [UInt32: Int] = [:]
        /// The maximum number of connections of each of these users.
        var userConnections: Int
        /// The approximate number of bytes allocated for clients since the heap was last trimmed.
        var usedBytes = 0
        var isStopped = false
    }

    private let group: any EventLoopGroup
    private let router: ControlRouter
    private let limits: ControlServer.Limits
    private let state: Lock<State>

    init(group: any EventLoopGroup, router: ControlRouter, limits: ControlServer.Limits) {
        self.group = group
        self.router = router
        self.limits = limits
        state = Lock(
            State(limiter: ConnectionLimiter(limits: limits), userConnections: limits.userConnections)
        )
    }

    /// Changes the maximum number of connections of each user without full access.
    func setUserConnections(_ limit: Int) {
        state.withLock { $0.userConnections = limit }
    }

    /// Serves a connected descriptor and takes ownership of it.
    func serve(_ descriptor: CInt, _ peer: PeerCredentials?) {
        let caller = router.caller(peer)
        let user = caller.access == .full ? nil : peer?.uid
        let added = state.withLock { state in
            state.isStopped ? nil : (id: state.limiter.add(for: user), exceeded: state.add(user))
        }
        guard let (id, exceeded) = added else {
            close(descriptor)
            return
        }
        let rejection = exceeded.map { Problem.tooManyConnections(caller, limit: $0) }
        let opened = bootstrap { [self] channel in
            try addPipeline(to: channel, id: id, peer: peer, rejection: rejection)
            try register(channel, id)
        }.withConnectedSocket(descriptor)
        opened.flatMap(\.closeFuture).whenComplete { [self] _ in closed(id, of: user) }
    }

    /// Returns how long to wait before accepting the next connection; `nil` if it can be accepted now. If too many
    /// connections have no complete request, this closes old ones.
    func acceptDelay() -> Duration? {
        let (decision, channels) = state.withLock { state in
            let decision = state.limiter.acceptDecision(now: .now)
            guard case .evict(let ids) = decision else { return (decision, [(ID, any Channel)]()) }
            return (decision, ids.compactMap { id in state.channels[id].map { (id, $0) } })
        }
        for (id, channel) in channels {
            channel.eventLoop.execute { [self] in closeIfSilent(channel, id) }
        }
        return switch decision {
        case .accept: nil
        case .evict: Self.evictionPause
        case .wait(let delay): delay
        }
    }

    /// How long accepting pauses after an eviction, so that the thread that serves connections can close the evicted
    /// ones.
    private static let evictionPause = Duration.milliseconds(2)

    /// Closes a connection unless its socket has unread input. On a busy machine a request may have arrived that the
    /// server has not read yet.
    private func closeIfSilent(_ channel: any Channel, _ id: ID) {
        guard state.withLock({ $0.limiter.isArriving(id) }), !hasUnreadInput(channel) else { return }
        channel.close(promise: nil)
    }

    private func hasUnreadInput(_ channel: any Channel) -> Bool {
        let count = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { descriptor in
            var byte: UInt8 = 0
            return recv(descriptor, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT))
        }
        return (count ?? 0) > 0
    }

    /// Lets every connection finish its request in flight. Closes the remaining connections after `grace`.
    func stop(grace: Duration) async {
        let channels = state.withLock { state in
            state.isStopped = true
            return Array(state.channels.values)
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

// MARK: - Stages

extension ControlConnections {
    /// Gives a connection a slot of a class if one is free.
    func requestSlot(_ connectionClass: ConnectionClass, _ id: ID, bytes: Int) -> ConnectionLimiter.Admission
    {
        state.withLock { $0.limiter.requestSlot(connectionClass, id, bytes: bytes) }
    }

    /// Records that a handler starts to work on the connection's request. The slot stays taken until the handler
    /// returns.
    func beginHandling(_ id: ID) {
        state.withLock { $0.limiter.beginHandling(id) }
    }

    func endHandling(_ id: ID) {
        state.withLock { $0.limiter.endHandling(id) }
    }

    /// Moves a connection to a stage in which it holds no slot. Closes the connections that exceed the limit of that
    /// stage.
    func move(_ id: ID, to stage: ConnectionLimiter.Stage) {
        let channels = state.withLock { state in
            state.limiter.move(id, to: stage, now: .now).compactMap { state.channels[$0] }
        }
        for channel in channels { channel.close(promise: nil) }
    }

    private func register(_ channel: any Channel, _ id: ID) throws {
        let isStopped = state.withLock { state in
            if !state.isStopped {
                state.channels[id] = channel
                state.limiter.activate(id, now: .now)
            }
            return state.isStopped
        }
        if isStopped { throw ChannelError.ioOnClosedChannel }
    }

    private func closed(_ id: ID, of user: UInt32?) {
        state.withLock { state in
            state.limiter.close(id)
            state.remove(user)
            state.channels[id] = nil
            state.usedBytes += Self.connectionBytes
        }
    }
}

extension ControlConnections.State {
    /// Counts a connection of a user without full access. Returns the limit if the connection exceeds it.
    fileprivate mutating func add(_ user: UInt32?) -> Int? {
        guard let user else { return nil }
        users[user, default: 0] += 1
        return users[user, default: 0] > userConnections ? userConnections : nil
    }

    fileprivate mutating func remove(_ user: UInt32?) {
        guard let user, let count = users[user] else { return }
        users[user] = count > 1 ? count - 1 : nil
    }
}

// MARK: - Memory

extension ControlConnections {
    /// The approximate number of bytes that a connection allocates, apart from its messages. Rounded up.
    private static let connectionBytes = 16 << 10
    /// The number of allocated bytes after which the heap is trimmed.
    private static let trimBytes = 1 << 20

    /// Adds the length of a message to the allocated bytes.
    func use(bytes: Int) {
        state.withLock { $0.usedBytes += bytes }
    }

    /// Returns freed memory to the kernel if enough was allocated since the last time. By default the C library keeps
    /// most of it.
    func returnMemory() {
        let isWorthwhile = state.withLock { state in
            guard state.usedBytes >= Self.trimBytes else { return false }
            state.usedBytes = 0
            return true
        }
        if isWorthwhile { _ = malloc_trim(0) }
    }
}

// MARK: - Pipelines

extension ControlConnections {
    private func bootstrap(
        _ initialize: @escaping @Sendable (any Channel) throws -> Void
    ) -> ClientBootstrap {
        ClientBootstrap(group: group)
            .channelOption(.autoRead, value: false)
            .channelOption(.recvAllocator, value: Self.receiveBuffers)
            // A client may close its sending side after its request and still wait for the response.
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try initialize(channel) }
            }
    }

    /// Allocates small receive buffers at first, because an idle connection keeps its last buffer.
    private static let receiveBuffers = AdaptiveRecvByteBufferAllocator(
        minimum: 512,
        initial: 1024,
        maximum: 65536
    )

    /// - Parameter rejection: The response to a connection that is not served.
    private func addPipeline(
        to channel: any Channel,
        id: ID,
        peer: PeerCredentials?,
        rejection: Problem?
    ) throws {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderListSize = limits.headerBytes
        decoding.maxHeaderFieldSize = limits.headerFieldBytes
        decoding.maxHeaderFieldCount = limits.headerFields
        let handlers: [any ChannelHandler] = [
            ArrivalHandler(),
            HTTPResponseEncoder(),
            ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: decoding)),
            ControlConnectionHandler(
                id: id,
                peer: peer,
                router: router,
                limits: limits,
                connections: self,
                rejection: rejection
            ),
        ]
        try channel.pipeline.syncOperations.addHandlers(handlers)
    }
}

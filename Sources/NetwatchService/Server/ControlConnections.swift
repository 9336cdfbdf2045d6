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
    private let refused: Lock<RefusedConnections>

    init(group: any EventLoopGroup, router: ControlRouter, limits: ControlServer.Limits) {
        self.group = group
        self.router = router
        self.limits = limits
        state = Lock(
            State(
                limiter: ConnectionLimiter(limits: limits),
                userConnections: limits.userConnections(within: limits.userConnections)
            )
        )
        refused = Lock(RefusedConnections(limit: limits.refusedConnections))
    }

    /// Changes the maximum number of connections of each user without full access.
    func setUserConnections(_ limit: Int) {
        let limit = limits.userConnections(within: limit)
        state.withLock { $0.userConnections = limit }
    }

    /// Serves a connection, or refuses it if its user has no access or too many connections. Takes ownership of it.
    ///
    /// - Returns: `false` if the connection should be served, but has one of the last descriptors. Then nothing was
    ///   done, and it still belongs to the caller.
    func take(_ connection: AcceptedConnection) -> Bool {
        let caller = router.caller(connection.peer)
        let user = caller.access == .full ? nil : connection.peer?.uid
        let admission = state.withLock {
            $0.admit(user, hasAccess: caller.access > .none, isShort: connection.isReserved)
        }
        switch admission {
        case .served(let id): serve(connection, id, user)
        case .refused(let reason): refuse(connection, caller, reason)
        case .short: return false
        case .stopped: close(connection.descriptor)
        }
        return true
    }

    private func serve(_ connection: AcceptedConnection, _ id: ID, _ user: UInt32?) {
        let opened = bootstrap { [self] channel in
            try addPipeline(to: channel, id: id, peer: connection.peer)
            try register(channel, id)
        }.withConnectedSocket(connection.descriptor)
        opened.flatMap(\.closeFuture).whenComplete { [self] _ in closed(id, of: user) }
    }

    private func refuse(
        _ connection: AcceptedConnection,
        _ caller: Caller,
        _ reason: RefusedConnections.Reason
    ) {
        let refusal = RefusedConnections.Refusal(caller: caller, reason: reason)
        let known = refused.withLock { $0.response(to: refusal) }
        let response = known ?? ControlResponse(problem(of: refusal)).lastMessage
        refused.withLock {
            $0.refuse(
                connection.descriptor,
                refusal,
                with: response,
                isKept: !connection.isReserved,
                now: .now
            )
        }
    }

    private func problem(of refusal: RefusedConnections.Refusal) -> Problem {
        switch refusal.reason {
        case .noAccess: router.refusal(of: refusal.caller)
        case .tooManyConnections(let limit): .tooManyConnections(refusal.caller, limit: limit)
        }
    }

    /// Closes the refused connections whose clients have read their responses, and returns memory to the kernel. Must
    /// be called about every second.
    func cleanUp() {
        refused.withLock { $0.closeOld(now: .now) }
        returnMemory()
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
        refused.withLock { $0.closeAll() }
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
    fileprivate enum Admission {
        case served(ControlConnections.ID)
        case refused(RefusedConnections.Reason)
        /// The connection should be served, but too few descriptors are left.
        case short
        case stopped
    }

    /// Decides about a new connection, and counts it if it is served.
    ///
    /// - Parameter user: The user without full access; `nil` for others.
    fileprivate mutating func admit(_ user: UInt32?, hasAccess: Bool, isShort: Bool) -> Admission {
        guard !isStopped else { return .stopped }
        guard hasAccess else { return .refused(.noAccess) }
        if let user, users[user, default: 0] >= userConnections {
            return .refused(.tooManyConnections(userConnections))
        }
        guard !isShort else { return .short }
        if let user { users[user, default: 0] += 1 }
        return .served(limiter.add(for: user))
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
    private func returnMemory() {
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

    private func addPipeline(to channel: any Channel, id: ID, peer: PeerCredentials?) throws {
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
                connections: self
            ),
        ]
        try channel.pipeline.syncOperations.addHandlers(handlers)
    }
}

/// A connection that the listener has accepted, and that no part of the server owns yet.
struct AcceptedConnection: Sendable {
    /// The descriptor, which is non-blocking and close-on-exec.
    let descriptor: CInt
    /// The process at the other end; `nil` for a TCP connection.
    let peer: PeerCredentials?
    /// Whether the descriptor is one of the last, which connections must leave free (``DescriptorSupply``).
    let isReserved: Bool

    /// Reads the credentials of the peer. Closes the descriptor if that fails.
    ///
    /// - Parameter isLocal: Whether the connection is one of a unix socket.
    init(_ descriptor: CInt, isLocal: Bool) throws(SystemError) {
        do throws(SystemError) {
            peer = isLocal ? try PeerCredentials(ofSocket: descriptor) : nil
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        isReserved = DescriptorSupply.isReserved(descriptor)
    }
}

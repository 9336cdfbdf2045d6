internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// A multi handle on an event loop: a connection pool with the transfers that use it.
///
/// It is confined to the loop's thread. libcurl states which descriptors and which timeout it waits for, and is called
/// when they are ready (`curl_multi_socket_action(3)`). Call ``end()`` before the last reference is released, because
/// closing pooled connections calls back.
final class CurlMulti {
    /// The result of letting libcurl run.
    struct Turn {
        /// The transfers that have ended.
        var ended: [TransferID] = []
        /// The transfers that need a connection before they can be added again.
        var unconnected: [Transfer] = []
        /// The transfers that reached milestones in this turn.
        var milestones: [(id: TransferID, reached: Transfer.Milestones)] = []
    }

    let loop: EventLoop
    private let onIdleCheck: @Sendable () -> Void
    private let watchdog: TurnWatchdog
    let trust: TrustContext
    /// The transfers with events to deliver at the end of this turn.
    private var withEvents: [Transfer] = []
    private var handle: MultiHandle?
    private var sockets: SocketWatches
    private var timer: CurlTimer
    /// Set while there are transfers.
    private var idleTimer: EventLoop.Timer?
    private var transfers: [TransferID: Transfer] = [:]
    /// The transfers that wait for a connection before they are added again; see ``Turn/unconnected``.
    private var detached: Set<TransferID> = []
    private var connections = ConnectionTable()
    /// The transfers whose descriptor could not be registered with the loop.
    private var unwatched: [TransferID: SystemError] = [:]

    /// - Parameters:
    ///   - onReadiness: Called on the loop. Must call ``descriptorIsReady(_:_:)``.
    ///   - onTimeout: Called on the loop. Must call ``timeoutHasPassed()``.
    ///   - onIdleCheck: Called on the loop. Must call ``endIdleTransfers()``.
    init(
        loop: EventLoop,
        watchdog: TurnWatchdog,
        trust: TrustContext,
        onReadiness: @escaping @Sendable (CInt, EventLoop.Readiness) -> Void,
        onTimeout: @escaping @Sendable () -> Void,
        onIdleCheck: @escaping @Sendable () -> Void
    ) throws(TransferFailure) {
        guard let handle = MultiHandle() else {
            throw .refused(CURLE_OUT_OF_MEMORY, "out of memory or descriptors")
        }
        self.loop = loop
        self.watchdog = watchdog
        self.trust = trust
        sockets = SocketWatches(loop, watchdog, onReadiness: onReadiness)
        timer = CurlTimer(loop, onTimeout: onTimeout)
        self.onIdleCheck = onIdleCheck
        let multi = handle.rawValue
        self.handle = consume handle
        setConnectionLimit(Self.minimumConnectionLimit)
        let context = Unmanaged.passUnretained(self).toOpaque()
        netwatch_multi_set_socket_callback(
            multi,
            { easy, descriptor, interest, context, _ in
                Unmanaged<CurlMulti>.fromOpaque(context!).takeUnretainedValue()
                    .watch(descriptor, interest, for: easy)
                return 0
            },
            context
        )
        netwatch_multi_set_timer_callback(
            multi,
            { _, milliseconds, context in
                Unmanaged<CurlMulti>.fromOpaque(context!).takeUnretainedValue().timer
                    .set(milliseconds: milliseconds)
                return 0
            },
            context
        )
    }

    /// The minimum of the connection limit of the pool, for all hosts together.
    ///
    /// The limit is the highest number of concurrent transfers so far. libcurl's default is four per running transfer,
    /// so the end of a burst would close most connections. A limit below the number of transfers would close each
    /// connection with its transfer.
    private static let minimumConnectionLimit = 256
    private var connectionLimit = 0

    /// Lowers the connection limit after a burst, so that libcurl starts to close the additional connections.
    func lowerConnectionLimit() {
        setConnectionLimit(max(Self.minimumConnectionLimit, transfers.count))
    }

    private func setConnectionLimit(_ count: Int) {
        connectionLimit = count
        _ = withHandle { netwatch_multi_set_long($0, CURLMOPT_MAXCONNECTS, count) }
    }

    var isIdle: Bool { transfers.isEmpty && detached.isEmpty }

    // MARK: Transfers

    /// Starts a transfer. It ends with ``remove(_:)`` or in a later ``Turn``.
    func add(_ transfer: Transfer) throws(TransferFailure) {
        let result = withHandle { curl_multi_add_handle($0, transfer.handle) }
        guard result == CURLM_OK else {
            throw .refused(CURLE_FAILED_INIT, String(cString: curl_multi_strerror(result)))
        }
        transfers[transfer.id] = transfer
        detached.remove(transfer.id)
        if transfers.count > connectionLimit { setConnectionLimit(transfers.count) }
        if idleTimer == nil { checkIdleness() }
    }

    /// Removes a transfer before its end.
    func remove(_ id: TransferID) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        unwatched[id] = nil
        _ = withHandle { curl_multi_remove_handle($0, transfer.handle) }
        connections.release(id)
        return transfer
    }

    /// Releases the connection that was reserved for a transfer which is not added, or not added again.
    func forget(_ id: TransferID) {
        detached.remove(id)
        connections.release(id)
    }

    /// See ``Transfer/stopReceiving()``.
    func stopReceiving(_ id: TransferID) {
        transfers[id]?.stopReceiving()
    }

    /// Changes the pause of a transfer. libcurl may deliver data that it has kept, so this must not be called from its
    /// callbacks.
    func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) -> Turn {
        guard let transfer = transfers[id] else { return Turn() }
        let code = change(transfer)
        guard code == CURLE_OK else {
            _ = remove(id)
            transfer.finish(code)
            return Turn(ended: [id], milestones: deliverEvents())
        }
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Ends every transfer and closes every connection.
    func end() {
        for id in transfers.keys {
            remove(id)?.finish(CURLE_ABORTED_BY_CALLBACK, message: "the transfer engine was released")
        }
        handle = nil
        timer.cancel()
        idleTimer.map(loop.cancel)
        idleTimer = nil
        sockets.removeAll()
    }

    // MARK: Loop events

    /// Lets libcurl handle a ready descriptor.
    func descriptorIsReady(_ descriptor: CInt, _ readiness: EventLoop.Readiness) -> Turn {
        guard sockets.isAwaited(descriptor) else {
            // The server has closed an unused connection. libcurl detects that itself.
            sockets.remove(descriptor)
            return Turn()
        }
        return act(on: descriptor, readiness.curlEvents)
    }

    /// Lets libcurl check its timeouts.
    func timeoutHasPassed() -> Turn {
        guard timer.fire(), handle != nil else { return Turn() }
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Ends the transfers that have exceeded an idle, response or body timeout.
    func endIdleTransfers() -> Turn {
        idleTimer = nil
        let now = ContinuousClock.now
        let late = transfers.values.compactMap { transfer in
            transfer.timeoutMessage(at: now).map { (id: transfer.id, message: $0) }
        }
        for (id, message) in late {
            discardUnacknowledged(of: id)
            remove(id)?.finish(CURLE_OPERATION_TIMEDOUT, message: message)
        }
        if !transfers.isEmpty { checkIdleness() }
        return Turn(ended: late.map(\.id), milestones: deliverEvents())
    }

    private func checkIdleness() {
        idleTimer = loop.schedule(at: .now + IdleTracker.interval, onIdleCheck)
    }

    private func act(on descriptor: CInt, _ events: CInt) -> Turn {
        var running: CInt = 0
        watchdog.turnWillBegin()
        _ = withHandle { curl_multi_socket_action($0, descriptor, events, &running) }
        watchdog.turnDidEnd()
        let aborted = markAborted()
        var turn = finishEnded()
        if !unwatched.isEmpty { turn.ended += finishUnwatched() }
        if !aborted.isEmpty { turn.ended += finishAborted(aborted) }
        turn.milestones = deliverEvents()
        return turn
    }

    /// Delivers the events of this turn. Returns the milestones that the transfers reached.
    private func deliverEvents() -> [(id: TransferID, reached: Transfer.Milestones)] {
        guard !withEvents.isEmpty else { return [] }
        let transfers = withEvents
        withEvents = []
        return transfers.compactMap { transfer in
            let reached = transfer.deliverEvents()
            return reached.isEmpty ? nil : (transfer.id, reached)
        }
    }

    /// Marks the transfers whose connections were shut down by the watchdog. Returns these connections.
    private func markAborted() -> [TurnWatchdog.AbortedConnection] {
        let connections = sockets.takeAborted()
        for connection in connections {
            for transfer in transfers.values where transfer.ends == connection.ends {
                transfer.stop = transfer.stop ?? .abortedByWatchdog(connection.bytes)
            }
        }
        return connections
    }

    /// Ends the marked transfers that libcurl would retry over another connection, or has not handled yet.
    private func finishAborted(_ connections: [TurnWatchdog.AbortedConnection]) -> [TransferID] {
        let ids = transfers.values.filter(\.isAborted).map(\.id)
        for id in ids {
            // libcurl may not have noticed that the connection has ended, and would keep it in the pool.
            transfers[id]?.closeConnectionAfterUse()
            remove(id)?.finish(CURLE_RECV_ERROR)
        }
        sockets.forgetAborted(connections)
        return ids
    }

    private func finishEnded() -> Turn {
        var turn = Turn()
        var remaining: CInt = 0
        while let message = withHandle({ curl_multi_info_read($0, &remaining) })?.pointee {
            guard message.msg == CURLMSG_DONE, let transfer = Transfer.of(message.easy_handle) else {
                continue
            }
            let code = message.data.result
            if code == CURLE_COULDNT_CONNECT, transfer.mayReconnect {
                detach(transfer)
                turn.unconnected.append(transfer)
            } else {
                _ = remove(transfer.id)
                transfer.finish(code)
                turn.ended.append(transfer.id)
            }
        }
        return turn
    }

    /// Takes a transfer out until it is added again with another connection.
    private func detach(_ transfer: Transfer) {
        connections.reservationWasNotUsed(transfer.id)
        detached.insert(transfer.id)
        _ = remove(transfer.id)
    }

    private func finishUnwatched() -> [TransferID] {
        let failed = unwatched
        for (id, error) in failed {
            remove(id)?.finish(CURLE_FAILED_INIT, errno: error.errno, message: "\(error)")
        }
        return Array(failed.keys)
    }

    // MARK: Connections

    /// Reserves an open connection for a transfer. Returns whether there is one.
    func reserveConnection(to origin: String, for transfer: TransferID) -> Bool {
        connections.reserve(origin, for: transfer) { WatchedSocket.isQuiet($0) }
    }

    /// Takes a transfer off its connection if the server has acknowledged nothing of its request, or, in a TLS
    /// handshake, has not acknowledged everything. Returns the transfer then: it has to be connected again and added
    /// again.
    func leaveStalledConnection(_ id: TransferID) -> Transfer? {
        guard let descriptor = connections.connection(onlyOf: id), let transfer = transfers[id],
            !transfer.head.hasBegun, transfer.maySend, transfer.bodyReader.mayRestart,
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0,
            WatchedSocket.acknowledgedBytes(of: descriptor) <= transfer.requestOffset ?? .max
        else { return nil }
        discardUnacknowledged(of: id)
        detach(transfer)
        transfer.markUnsent()
        return transfer
    }

    /// Makes the kernel forget what it has not delivered of a transfer that is about to be ended.
    func discardUnacknowledged(of id: TransferID) {
        guard let descriptor = connections.connection(onlyOf: id),
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0
        else { return }
        WatchedSocket.discardUnacknowledgedOnClose(descriptor)
        transfers[id]?.closeConnectionAfterUse()
    }

    // MARK: Descriptors and timeouts of libcurl

    private func watch(_ descriptor: CInt, _ interest: CInt, for easy: UnsafeMutableRawPointer?) {
        do throws(SystemError) {
            switch interest {
            case CURL_POLL_IN: try sockets.watch(descriptor, for: .read)
            case CURL_POLL_OUT: try sockets.watch(descriptor, for: .write)
            case CURL_POLL_INOUT: try sockets.watch(descriptor, for: [.read, .write])
            default: release(descriptor, of: easy.flatMap(Transfer.of))
            }
        } catch {
            if let easy, let transfer = Transfer.of(easy) { unwatched[transfer.id] = error }
        }
    }

    /// Stops waiting for a descriptor. A connection over which a request was sent stays registered, because it is
    /// usually needed again soon. libcurl closes other connections, which were late or not needed, without notice.
    private func release(_ descriptor: CInt, of transfer: Transfer?) {
        if let transfer, transfer.isReady {
            sockets.setUnused(descriptor)
        } else {
            sockets.remove(descriptor)
        }
    }

    /// Closes a socket for libcurl.
    private func closeSocket(_ descriptor: CInt) {
        sockets.remove(descriptor)
        connections.close(descriptor)
        close(descriptor)
    }

    private func withHandle<Result>(_ body: (UnsafeMutableRawPointer) -> Result) -> Result {
        guard let multi = handle?.rawValue else {
            preconditionFailure("the multi handle was used after its end")
        }
        return body(multi)
    }
}

extension CurlMulti: TransferContext {
    func setCloseSocketCallback(of easy: borrowing EasyHandle) throws(TransferFailure) {
        try easy.setCloseSocketCallback { multi, descriptor in
            Unmanaged<CurlMulti>.fromOpaque(multi!).takeUnretainedValue().closeSocket(descriptor)
            return 0
        }
        try easy.set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(self).toOpaque())
    }

    func didOpen(_ descriptor: CInt, for transfer: Transfer) {
        connections.open(
            descriptor,
            to: transfer.url.origin,
            localPort: WatchedSocket.localPort(of: descriptor),
            // Whether the server speaks HTTP/2 is known only when the response begins.
            capacity: transfer.url.isSecure ? ConnectionTable.streamsPerConnection : 1,
            for: transfer.id
        )
    }

    func didSelectConnection(for transfer: Transfer) {
        connections.use(by: transfer.id, transfer.url.origin, localPort: transfer.ends.localPort)
    }

    func setMultiplexed(_ isMultiplexed: Bool, connectionOf id: TransferID) {
        let capacity = isMultiplexed ? ConnectionTable.streamsPerConnection : 1
        connections.setCapacity(ofConnectionOf: id, to: capacity)
    }

    func sentBytes(connectionOf id: TransferID) -> UInt64? {
        connections.connection(of: id).flatMap(WatchedSocket.sentBytes)
    }

    func recordUsefulBytes(_ count: Int) { watchdog.recordUsefulBytes(count) }

    func scheduleDelivery(to transfer: Transfer) { withEvents.append(transfer) }
}

internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// A multi handle on an event loop. It runs transfers and has its own pool of connections.
///
/// It is confined to the loop's thread. libcurl tells it which descriptors and which timeout to wait for, and it calls
/// libcurl when they are ready (`curl_multi_socket_action(3)`). Call ``end()`` before the last reference is released,
/// because libcurl calls back into this object when it closes its connections.
final class CurlMulti {
    let loop: EventLoop
    private let onIdleCheck: @Sendable () -> Void
    let later: @Sendable (TransferID, @escaping @Sendable (Transfer) -> CURLcode) -> Void
    let watchdog: TurnWatchdog
    let trust: TrustContext
    /// The transfers with events to deliver at the end of this turn.
    var withEvents: [Transfer] = []
    /// The transfers whose events are being delivered. A separate array, so that both keep their memory.
    private var delivering: [Transfer] = []
    /// The result of the current call of libcurl.
    private var turn = Turn()
    private var handle: MultiHandle?
    var sockets: SocketWatches
    private var timer: CurlTimer
    /// The timer of the next check of the idle, response and body timeouts. Set while there are transfers.
    private var idleTimer: EventLoop.Timer?
    private var transfers: [TransferID: Transfer] = [:]
    /// The transfers that were reported as ``Turn/unconnected`` and have not been added again yet.
    private var detached: Set<TransferID> = []
    var connections = ConnectionTable()
    var unusedHandles = HandleStock()
    /// The transfers whose descriptor could not be registered with the loop.
    private var unwatched: [TransferID: SystemError] = [:]

    /// Creates a multi handle.
    ///
    /// - Parameters:
    ///   - onReadiness: Called on the loop when a descriptor is ready. Must call ``descriptorIsReady(_:_:)``.
    ///   - onTimeout: Called on the loop when libcurl's timeout has passed. Must call ``timeoutHasPassed()``.
    ///   - onIdleCheck: Called on the loop at each check of the timeouts. Must call ``endIdleTransfers()``.
    ///   - later: Called on any thread. Must call ``changePause(of:_:)`` in another turn of the loop; see
    ///     ``TransferContext/later``.
    init(
        loop: EventLoop,
        watchdog: TurnWatchdog,
        trust: TrustContext,
        onReadiness: @escaping @Sendable (CInt, EventLoop.Readiness) -> Void,
        onTimeout: @escaping @Sendable () -> Void,
        onIdleCheck: @escaping @Sendable () -> Void,
        later: @escaping @Sendable (TransferID, @escaping @Sendable (Transfer) -> CURLcode) -> Void
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
        self.later = later
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

    /// The lower bound of ``connectionLimit``.
    private static let minimumConnectionLimit = 256
    /// The maximum number of open connections in the pool, over all hosts: the highest number of concurrent transfers
    /// since ``trim()``, and at least ``minimumConnectionLimit``.
    ///
    /// libcurl's own default is four per running transfer. With that default, libcurl would close most connections at
    /// the end of a burst. With a limit below the number of transfers, libcurl would close a connection at the end of
    /// each transfer.
    private var connectionLimit = 0

    /// Releases what only a burst needed. Lowers the connection limit to the current number of transfers, so that
    /// libcurl begins to close connections, and destroys the unused easy handles.
    func trim() {
        unusedHandles.removeAll()
        setConnectionLimit(max(Self.minimumConnectionLimit, transfers.count))
    }

    private func setConnectionLimit(_ count: Int) {
        connectionLimit = count
        _ = withHandle { netwatch_multi_set_long($0, CURLMOPT_MAXCONNECTS, count) }
    }

    var isIdle: Bool { transfers.isEmpty && detached.isEmpty }

    // MARK: Transfers

    /// Starts a transfer. It runs until a later ``Turn`` reports its end or ``remove(_:)`` ends it.
    func add(_ transfer: Transfer) throws(TransferFailure) {
        if transfer.request.unixSocketPath != nil { discardUnreadData(to: transfer.connectionOrigin) }
        let result = withHandle { curl_multi_add_handle($0, transfer.easy.rawValue) }
        guard result == CURLM_OK else {
            throw .refused(CURLE_FAILED_INIT, String(cString: curl_multi_strerror(result)))
        }
        transfers[transfer.id] = transfer
        detached.remove(transfer.id)
        if transfers.count > connectionLimit { setConnectionLimit(transfers.count) }
        if idleTimer == nil { checkIdleness() }
    }

    /// Removes a transfer before its end. Returns `nil` if it has already ended.
    func remove(_ id: TransferID) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        unwatched[id] = nil
        _ = withHandle { curl_multi_remove_handle($0, transfer.easy.rawValue) }
        // libcurl may have closed the socket without a callback before the request was sent. If it has closed it later,
        // the table does not contain the connection any more.
        if let descriptor = connections.release(id), transfer.isReady { sockets.watchUnused(descriptor) }
        return transfer
    }

    /// Releases the connection that was reserved for a transfer. Called for a transfer that will not be added, or will
    /// not be added again.
    func forget(_ id: TransferID) {
        detached.remove(id)
        connections.release(id)
    }

    /// Stops receiving the body of a transfer for the rest of this turn; see ``Transfer/stopReceiving()``.
    func stopReceiving(_ id: TransferID) {
        transfers[id]?.stopReceiving()
    }

    /// Changes the pause of a transfer. Must not be called from a callback of libcurl, because it may make libcurl call
    /// other callbacks, to deliver data that it kept during the pause.
    ///
    /// - Parameter change: Changes the pause. A result other than `CURLE_OK` ends the transfer.
    func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) -> Turn {
        guard let transfer = transfers[id] else { return Turn() }
        let code = change(transfer)
        guard code == CURLE_OK else {
            _ = remove(id)
            transfer.finish(code)
            turn.removeAll()
            turn.ended.append(id)
            deliverEvents()
            return turn
        }
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Ends every transfer and closes every connection.
    func end() {
        for id in transfers.keys {
            remove(id)?.finish(CURLE_ABORTED_BY_CALLBACK, message: "the transfer engine was released")
        }
        unusedHandles.removeAll()
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
            // The readiness is outdated if libcurl has read the data since, for another event.
            guard !WatchedSocket.isQuiet(descriptor) else { return Turn() }
            // The server has closed an unused connection, or has sent data that belongs to no request. A response that
            // comes before its request must not be used (RFC 9112 §9.2). If a transfer may be using the connection,
            // `discardUnreadData(to:)` decides later: the loop would report the same data again in every turn.
            guard connections.isIdleHTTP1(descriptor) else {
                sockets.unwatch(descriptor)
                return Turn()
            }
            discard(descriptor)
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
        turn.removeAll()
        turn.ended += late.map(\.id)
        deliverEvents()
        return turn
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
        turn.removeAll()
        finishEnded()
        if !unwatched.isEmpty { turn.ended += finishUnwatched() }
        if !aborted.isEmpty { turn.ended += finishAborted(aborted) }
        deliverEvents()
        // The transfers must not be retained until the next turn.
        defer { turn.unconnected = [] }
        return turn
    }

    /// Delivers the events of this turn. Records the milestones that the transfers reached.
    private func deliverEvents() {
        guard !withEvents.isEmpty else { return }
        swap(&withEvents, &delivering)
        defer { delivering.removeAll(keepingCapacity: true) }
        for transfer in delivering {
            let reached = transfer.deliverEvents()
            if !reached.isEmpty { turn.milestones.append((transfer.id, reached)) }
        }
    }

    /// Marks the transfers whose connections the watchdog has shut down. Returns these connections.
    private func markAborted() -> [TurnWatchdog.AbortedConnection] {
        let connections = sockets.takeAborted()
        for connection in connections {
            for transfer in transfers.values where transfer.ends == connection.ends {
                transfer.abort(afterUselessBytes: connection.bytes)
            }
        }
        return connections
    }

    /// Ends the marked transfers that libcurl has not ended itself: it would retry them over another connection, or has
    /// not noticed the shutdown yet.
    private func finishAborted(_ connections: [TurnWatchdog.AbortedConnection]) -> [TransferID] {
        let ids = transfers.values.filter(\.isAborted).map(\.id)
        for id in ids {
            // If libcurl has not noticed the shutdown, it would keep the connection in the pool.
            transfers[id]?.closeConnectionAfterUse()
            remove(id)?.finish(CURLE_RECV_ERROR)
        }
        sockets.forgetAborted(connections)
        return ids
    }

    private func finishEnded() {
        var remaining: CInt = 0
        while let message = withHandle({ curl_multi_info_read($0, &remaining) })?.pointee {
            guard message.msg == CURLMSG_DONE, let transfer = Transfer.of(message.easy_handle) else {
                continue
            }
            let code = message.data.result
            if transfer.mayReconnect(after: code) || transfer.mayAskProgram(after: code) {
                detach(transfer)
                turn.unconnected.append(transfer)
            } else {
                _ = remove(transfer.id)
                transfer.finish(code)
                if transfer.leavesCleanHandle(after: code) { unusedHandles.add(transfer.handle) }
                turn.ended.append(transfer.id)
            }
        }
    }

    /// Removes a transfer from libcurl until it is added again with another connection.
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

    /// Reserves an open connection for a transfer. Returns `false` if no connection has room.
    func reserveConnection(to origin: String, for transfer: TransferID) -> Bool {
        connections.reserve(origin, for: transfer) { WatchedSocket.isQuiet($0) }
    }

    /// Discards the idle connections to a unix socket that have data to read. Called before libcurl selects one of them
    /// for a transfer, because it does not report which one it selects. If one of them had data then, the transfer
    /// would need a new connection, and libcurl would close the selected one; see ``hasUnreadData(connectionOf:)``.
    private func discardUnreadData(to origin: String) {
        for descriptor in connections.idleHTTP1Connections(to: origin)
        where !WatchedSocket.isQuiet(descriptor) {
            discard(descriptor)
        }
    }

    /// Makes libcurl close an idle connection instead of using it again. libcurl may keep the closed connection in its
    /// pool for a while, so the table must not contain it any more.
    private func discard(_ descriptor: CInt) {
        WatchedSocket.discard(descriptor)
        sockets.remove(descriptor)
        connections.close(descriptor)
    }

    /// Removes a transfer from its connection if the connection is stalled. Returns the transfer, which must then be
    /// added again with a new connection. Returns `nil` if the transfer stays.
    ///
    /// A connection is stalled in two cases:
    ///
    /// - The request was sent, and the server's kernel has acknowledged none of its bytes.
    /// - The TLS handshake is under way, and the server's kernel has not acknowledged all bytes of this side.
    ///
    /// In both cases, no other transfer may use the connection, and the request must be allowed to be sent again.
    func leaveStalledConnection(_ id: TransferID) -> Transfer? {
        guard let descriptor = connections.connection(onlyOf: id), let transfer = transfers[id],
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0,
            transfer.mayRestart(acknowledged: WatchedSocket.acknowledgedBytes(of: descriptor))
        else { return nil }
        discardUnacknowledged(of: id)
        detach(transfer)
        transfer.markUnsent()
        return transfer
    }

    /// Makes the kernel drop the data of a transfer that the server's kernel has not acknowledged. Must be called
    /// before the transfer is ended. Without it, the kernel could still deliver the request afterwards.
    func discardUnacknowledged(of id: TransferID) {
        guard let descriptor = connections.connection(onlyOf: id),
            WatchedSocket.unacknowledgedBytes(of: descriptor) > 0
        else { return }
        WatchedSocket.discardUnacknowledgedOnClose(descriptor)
        transfers[id]?.closeConnectionAfterUse()
    }

    // MARK: Descriptors and timeouts of libcurl

    private func watch(_ descriptor: CInt, _ interest: CInt, for easy: UnsafeMutableRawPointer?) {
        // Asks libcurl, so it is read only where it is needed: this function runs several times per transfer.
        var transfer: Transfer? { easy.flatMap(Transfer.of) }
        do throws(SystemError) {
            switch interest {
            case CURL_POLL_IN: try sockets.watch(descriptor, for: .read)
            case CURL_POLL_OUT: try sockets.watch(descriptor, for: .write)
            case CURL_POLL_INOUT: try sockets.watch(descriptor, for: [.read, .write])
            default: return release(descriptor, of: transfer)
            }
            if connections.hasUnlocated, let transfer { connections.use(descriptor, by: transfer.id) }
        } catch {
            if let transfer { unwatched[transfer.id] = error }
        }
    }

    /// Handles libcurl's message that it waits for nothing on a descriptor.
    ///
    /// A connection over which a request was sent stays registered, because it is usually needed again soon. Other
    /// connections were established too late or were not needed. They are removed immediately, because libcurl may
    /// close them without a callback.
    private func release(_ descriptor: CInt, of transfer: Transfer?) {
        if let transfer, transfer.isReady {
            sockets.setUnused(descriptor)
        } else {
            sockets.remove(descriptor)
        }
    }

    /// Closes a socket for libcurl.
    func closeSocket(_ descriptor: CInt) {
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

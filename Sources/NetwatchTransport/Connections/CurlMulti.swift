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

    /// A socket that the loop watches.
    private struct Watch {
        let registration: EventLoop.Registration
        /// The events that libcurl waits for; `nil` while no transfer uses the connection. The socket stays registered
        /// then, because the next transfer usually follows soon and needs the same events.
        var interest: EventLoop.Interest?
        /// The events for which the loop watches the socket.
        var watched: EventLoop.Interest
    }

    let loop: EventLoop
    private let onReadiness: @Sendable (CInt, EventLoop.Readiness) -> Void
    private let onTimeout: @Sendable () -> Void
    private let onIdleCheck: @Sendable () -> Void
    let watchdog: TurnWatchdog
    let trust: TrustContext
    /// The transfers with events to deliver at the end of a turn.
    let round = NewsRound()
    private var handle: MultiHandle?
    private var watches: [CInt: Watch] = [:]
    /// When libcurl wants to check its timeouts.
    private var deadline: ContinuousClock.Instant?
    /// The timer for the deadline, or for an earlier deadline that is no longer needed. libcurl changes the deadline
    /// several times per transfer, so the timer is not always replaced.
    private var timer: EventLoop.Timer?
    /// Set while there are transfers.
    private var idleTimer: EventLoop.Timer?
    /// Whether libcurl wants to run immediately and the call is already scheduled.
    private var isDue = false
    private var transfers: [TransferID: Transfer] = [:]
    /// The transfers that wait for a connection before they are added again; see ``Turn/unconnected``.
    private var detached: Set<TransferID> = []
    var connections = ConnectionTable()
    /// The transfers whose descriptor could not be registered with the loop.
    private var unwatched: [TransferID: SystemError] = [:]
    /// The connections that the watchdog has shut down. Their transfers are ended at the end of this turn.
    private var cuts: [TurnWatchdog.Cut] = []

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
        self.onReadiness = onReadiness
        self.onTimeout = onTimeout
        self.onIdleCheck = onIdleCheck
        let multi = handle.rawValue
        self.handle = consume handle
        keepConnections(Self.leastConnectionsKept)
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
                Unmanaged<CurlMulti>.fromOpaque(context!).takeUnretainedValue().wait(milliseconds)
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
    private static let leastConnectionsKept = 256
    private var connectionsKept = 0

    /// Lowers the connection limit after a burst, so that libcurl starts to close the additional connections.
    func forgetBurst() {
        keepConnections(max(Self.leastConnectionsKept, transfers.count))
    }

    private func keepConnections(_ count: Int) {
        connectionsKept = count
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
        if transfers.count > connectionsKept { keepConnections(transfers.count) }
        if idleTimer == nil { checkIdleness() }
    }

    /// A transfer that libcurl runs.
    func transfer(_ id: TransferID) -> Transfer? { transfers[id] }

    /// Removes a transfer before its end.
    func remove(_ id: TransferID) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        unwatched[id] = nil
        _ = withHandle { curl_multi_remove_handle($0, transfer.handle) }
        connections.leave(id)
        return transfer
    }

    /// Releases the connection that was reserved for a transfer which is not added, or not added again.
    func forget(_ id: TransferID) {
        detached.remove(id)
        connections.leave(id)
    }

    /// See ``Transfer/hold()``.
    func hold(_ id: TransferID) {
        transfers[id]?.hold()
    }

    /// Changes the pause of a transfer. libcurl may deliver data that it has kept, so this must not be called from its
    /// callbacks.
    func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) -> Turn {
        guard let transfer = transfers[id] else { return Turn() }
        let code = change(transfer)
        guard code == CURLE_OK else {
            _ = remove(id)
            transfer.finish(code)
            return Turn(ended: [id], milestones: round.tell())
        }
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Ends every transfer and closes every connection.
    func end() {
        for id in transfers.keys {
            remove(id)?.finish(CURLE_ABORTED_BY_CALLBACK, message: "the transfer engine is gone")
        }
        handle = nil
        timer.map(loop.cancel)
        timer = nil
        idleTimer.map(loop.cancel)
        idleTimer = nil
        for descriptor in watches.keys { unwatch(descriptor) }
    }

    // MARK: Loop events

    /// Lets libcurl handle a ready descriptor.
    func descriptorIsReady(_ descriptor: CInt, _ readiness: EventLoop.Readiness) -> Turn {
        guard watches[descriptor]?.interest != nil else {
            // The server has closed an unused connection. libcurl detects that itself.
            unwatch(descriptor)
            return Turn()
        }
        return act(on: descriptor, readiness.curlEvents)
    }

    /// Lets libcurl check its timeouts.
    func timeoutHasPassed() -> Turn {
        if let timer, timer.deadline <= .now { self.timer = nil }
        isDue = false
        guard let deadline, handle != nil else { return Turn() }
        guard deadline <= .now else {
            setTimer(deadline)
            return Turn()
        }
        self.deadline = nil
        return act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Ends the transfers that have exceeded an idle, response or body timeout.
    func endIdleTransfers() -> Turn {
        idleTimer = nil
        let now = ContinuousClock.now
        let late = transfers.values.compactMap { transfer in
            transfer.overrun(at: now).map { (id: transfer.id, message: $0) }
        }
        for (id, message) in late {
            discardUnacknowledged(of: id)
            remove(id)?.finish(CURLE_OPERATION_TIMEDOUT, message: message)
        }
        if !transfers.isEmpty { checkIdleness() }
        return Turn(ended: late.map(\.id), milestones: round.tell())
    }

    private func checkIdleness() {
        idleTimer = loop.schedule(at: .now + Idleness.interval, onIdleCheck)
    }

    private func act(on descriptor: CInt, _ events: CInt) -> Turn {
        var running: CInt = 0
        watchdog.turnBegins()
        _ = withHandle { curl_multi_socket_action($0, descriptor, events, &running) }
        watchdog.turnEnds()
        blameTheCut()
        var turn = finishEnded()
        if !unwatched.isEmpty { turn.ended += finishUnwatched() }
        if !cuts.isEmpty { turn.ended += finishCut() }
        turn.milestones = round.tell()
        return turn
    }

    /// Marks the transfers whose connections were shut down by the watchdog, whether libcurl has closed them yet or
    /// not.
    private func blameTheCut() {
        let open = watchdog.cuts
        if !open.isEmpty { cuts += open.filter { watches[$0.key] != nil }.values }
        for cut in cuts {
            for transfer in transfers.values where transfer.ends == cut.ends {
                transfer.stop = transfer.stop ?? .keptBusy(cut.bytes)
            }
        }
    }

    /// Ends the marked transfers that libcurl would retry over another connection, or has not handled yet.
    private func finishCut() -> [TransferID] {
        defer { cuts = [] }
        let ids = transfers.values.filter(\.hasKeptBusy).map(\.id)
        for id in ids {
            // libcurl may not have noticed that the connection has ended, and would keep it in the pool.
            transfers[id]?.closesConnection()
            remove(id)?.finish(CURLE_RECV_ERROR)
        }
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
    func detach(_ transfer: Transfer) {
        connections.isRefused(transfer.id)
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

    // MARK: Descriptors and timeouts of libcurl

    private func watch(_ descriptor: CInt, _ interest: CInt, for easy: UnsafeMutableRawPointer?) {
        do throws(SystemError) {
            switch interest {
            case CURL_POLL_IN: try watch(descriptor, for: .read)
            case CURL_POLL_OUT: try watch(descriptor, for: .write)
            case CURL_POLL_INOUT: try watch(descriptor, for: [.read, .write])
            default: release(descriptor, of: easy.flatMap(Transfer.of))
            }
        } catch {
            if let easy, let transfer = Transfer.of(easy) { unwatched[transfer.id] = error }
        }
    }

    private func watch(_ descriptor: CInt, for interest: EventLoop.Interest) throws(SystemError) {
        if let watch = watches[descriptor] {
            if watch.watched != interest { try loop.update(watch.registration, to: interest) }
            watches[descriptor] = Watch(
                registration: watch.registration,
                interest: interest,
                watched: interest
            )
            return
        }
        let onReadiness = onReadiness
        let registration = try loop.register(descriptor, for: interest) { readiness in
            onReadiness(descriptor, readiness)
        }
        watchdog.add(descriptor)
        watches[descriptor] = Watch(registration: registration, interest: interest, watched: interest)
    }

    /// Stops waiting for a descriptor. A connection over which a request was sent stays registered, because it is
    /// usually needed again soon. libcurl closes other connections, which were late or not needed, without notice.
    private func release(_ descriptor: CInt, of transfer: Transfer?) {
        if let transfer, transfer.isReady {
            watches[descriptor]?.interest = nil
        } else {
            unwatch(descriptor)
        }
    }

    private func unwatch(_ descriptor: CInt) {
        guard let watch = watches.removeValue(forKey: descriptor) else { return }
        if let cut = watchdog.remove(descriptor) { cuts.append(cut) }
        loop.unregister(watch.registration)
    }

    /// Closes a socket for libcurl. It is removed from the loop first, because the kernel may reuse its descriptor.
    func closeSocket(_ descriptor: CInt) {
        unwatch(descriptor)
        connections.close(descriptor)
        close(descriptor)
    }

    /// Sets the timeout that libcurl asks for. libcurl must not be called from this callback, so a timeout of 0 is
    /// scheduled on the loop too.
    private func wait(_ milliseconds: Int) {
        guard milliseconds >= 0 else { return deadline = nil }
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        self.deadline = deadline
        if milliseconds > 0 {
            setTimer(deadline)
        } else if !isDue {
            isDue = true
            loop.execute(onTimeout)
        }
    }

    private func setTimer(_ deadline: ContinuousClock.Instant) {
        if let timer {
            guard deadline < timer.deadline else { return }
            loop.cancel(timer)
        }
        timer = loop.schedule(at: deadline, onTimeout)
    }

    private func withHandle<Result>(_ body: (UnsafeMutableRawPointer) -> Result) -> Result {
        guard let multi = handle?.rawValue else { preconditionFailure("the pool was closed") }
        return body(multi)
    }
}

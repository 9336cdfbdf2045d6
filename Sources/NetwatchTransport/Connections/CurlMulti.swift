internal import CNetwatchCurl
internal import NetwatchEventLoop

/// A multi handle on an event loop. It runs transfers and has its own pool of connections.
///
/// It is confined to the loop's thread. libcurl tells it which descriptors and which timeout to wait for, and it calls
/// libcurl when they are ready (`curl_multi_socket_action(3)`). Call ``end()`` before the last reference is released,
/// because libcurl calls back into this object when it closes its connections.
final class CurlMulti {
    let loop: EventLoop
    let onLimitCheck: @Sendable () -> Void
    let later: @Sendable (TransferID, @escaping @Sendable (Transfer) -> CURLcode) -> Void
    let watchdog: TurnWatchdog
    let trust: TrustContext
    let usesHTTP1: Bool
    /// The transfers with events to deliver at the end of this turn.
    var withEvents: [Transfer] = []
    /// The transfers whose events are being delivered. A separate array, so that both keep their memory.
    var delivering: [Transfer] = []
    /// The result of the current call of libcurl.
    var turn = Turn()
    private(set) var handle: MultiHandle?
    var sockets: SocketWatches
    var timer: CurlTimer
    /// The timer of the next check of the time limits. Set while there are transfers.
    var limitTimer: EventLoop.Timer?
    var transfers: [TransferID: Transfer] = [:]
    /// The transfers that were reported as ``Turn/unconnected`` and have not been added again yet.
    private var detached: Set<TransferID> = []
    let connections = ConnectionTable()
    var unusedHandles = HandleStock()
    /// The transfers whose descriptor could not be registered with the loop.
    var unwatched: [TransferID: SystemError] = [:]

    /// Creates a multi handle.
    ///
    /// - Parameters:
    ///   - usesHTTP1: Whether the transfers use HTTP/1.1 over TLS, too, instead of the version that the server selects.
    ///   - onReadiness: Called on the loop when a descriptor is ready. Must call ``descriptorIsReady(_:_:)``.
    ///   - onTimeout: Called on the loop when libcurl's timeout has passed. Must call ``timeoutHasPassed()``.
    ///   - onLimitCheck: Called on the loop at each check of the time limits. Must call ``endLateTransfers()``.
    ///   - later: Called on any thread. Must call ``changePause(of:_:)`` in another turn of the loop; see
    ///     ``TransferContext/later``.
    init(
        loop: EventLoop,
        watchdog: TurnWatchdog,
        trust: TrustContext,
        usesHTTP1: Bool,
        onReadiness: @escaping @Sendable (CInt, EventLoop.Readiness) -> Void,
        onTimeout: @escaping @Sendable () -> Void,
        onLimitCheck: @escaping @Sendable () -> Void,
        later: @escaping @Sendable (TransferID, @escaping @Sendable (Transfer) -> CURLcode) -> Void
    ) throws(TransferFailure) {
        guard let handle = MultiHandle() else {
            throw .refused(CURLE_OUT_OF_MEMORY, "out of memory or descriptors")
        }
        self.loop = loop
        self.watchdog = watchdog
        self.trust = trust
        self.usesHTTP1 = usesHTTP1
        sockets = SocketWatches(loop, watchdog, onReadiness: onReadiness)
        timer = CurlTimer(loop, onTimeout: onTimeout)
        self.onLimitCheck = onLimitCheck
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
        checkLimits(by: transfer.deadline)
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

    /// Removes a transfer from libcurl until it is added again with another connection.
    func detach(_ transfer: Transfer) {
        connections.reservationWasNotUsed(transfer.id)
        detached.insert(transfer.id)
        _ = remove(transfer.id)
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
            return endTurn(ending: [id])
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
        limitTimer.map(loop.cancel)
        limitTimer = nil
        sockets.removeAll()
    }

    func withHandle<Result>(_ body: (UnsafeMutableRawPointer) -> Result) -> Result {
        guard let multi = handle?.rawValue else {
            preconditionFailure("the multi handle was used after its end")
        }
        return body(multi)
    }
}

/// The timeout that libcurl requests, as a timer of the event loop. It is confined to the loop's thread.
///
/// libcurl changes its deadline several times per transfer. To save calls, the timer of the loop is replaced only if it
/// would fire too late. A timer that fires too early is set again.
struct CurlTimer {
    private let loop: EventLoop
    private let onTimeout: @Sendable () -> Void
    /// The time at which libcurl wants to check its timeouts; `nil` if it waits for none.
    private var deadline: BootInstant?
    /// The timer for the deadline, or for an earlier deadline that libcurl has replaced since.
    private var timer: EventLoop.Timer?
    /// Whether a call of `onTimeout` is scheduled because libcurl wants to run immediately.
    private var isDue = false

    /// Creates a timer that is not set.
    ///
    /// - Parameter onTimeout: Called on the loop. Must call ``fire()``.
    init(_ loop: EventLoop, onTimeout: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.onTimeout = onTimeout
    }

    /// Sets the timeout; a negative value removes it. Called from libcurl's timer callback, which must not call
    /// libcurl. Therefore, even for a timeout of 0, the loop calls `onTimeout` later.
    mutating func set(milliseconds: Int) {
        guard milliseconds >= 0 else { return deadline = nil }
        if milliseconds > 0 {
            let deadline = BootInstant.now + .milliseconds(milliseconds)
            self.deadline = deadline
            schedule(deadline)
        } else {
            deadline = .now
            if !isDue { loop.execute(onTimeout) }
            isDue = true
        }
    }

    /// Returns whether libcurl must check its timeouts now. If not, this function sets the timer again if there is a
    /// deadline.
    mutating func fire() -> Bool {
        let now = BootInstant.now
        if let timer, timer.deadline <= now { self.timer = nil }
        isDue = false
        guard let deadline else { return false }
        guard deadline <= now else {
            schedule(deadline)
            return false
        }
        self.deadline = nil
        return true
    }

    mutating func cancel() {
        timer.map(loop.cancel)
        (timer, deadline) = (nil, nil)
    }

    private mutating func schedule(_ deadline: BootInstant) {
        if let timer {
            guard deadline < timer.deadline else { return }
            loop.cancel(timer)
        }
        timer = loop.schedule(at: deadline, onTimeout)
    }
}

/// The easy handles of a multi handle that no transfer uses. The handle that was used last is used first, because its
/// memory is most likely in the processor's cache.
struct HandleStock {
    /// The maximum number of handles.
    static let limit = 64

    private(set) var handles: [TransferHandle] = []

    /// Removes and returns a handle for a transfer; `nil` if there is none of this shape.
    mutating func take(_ shape: TransferHandle.Shape) -> TransferHandle? {
        handles.lastIndex { $0.shape == shape }.map { handles.remove(at: $0) }
    }

    /// Adds the handle of a transfer that has ended. Drops the oldest handle if there are too many.
    mutating func add(_ handle: TransferHandle) {
        handle.transferEnded()
        if handles.count == Self.limit { handles.removeFirst() }
        handles.append(handle)
    }

    mutating func removeAll() { handles = [] }
}

internal import CNetwatchCurl
internal import NetwatchEventLoop

/// The sockets of a multi handle that the loop watches.
///
/// It is confined to the loop's thread.
struct SocketWatches {
    /// A socket that the loop watches.
    private struct Watch {
        let registration: EventLoop.Registration
        /// The events that libcurl waits for; `nil` while no transfer uses the connection. The socket stays registered
        /// then, because the next transfer usually follows soon and needs the same events.
        var interest: EventLoop.Interest?
        /// The events for which the loop watches the socket.
        var watched: EventLoop.Interest
    }

    private let loop: EventLoop
    private let watchdog: TurnWatchdog
    private let onReadiness: @Sendable (CInt, EventLoop.Readiness) -> Void
    private var watches: [CInt: Watch] = [:]
    /// The removed sockets that the watchdog had shut down.
    private var removedAborted: [TurnWatchdog.AbortedConnection] = []

    /// - Parameter onReadiness: Called on the loop when a socket is ready.
    init(
        _ loop: EventLoop,
        _ watchdog: TurnWatchdog,
        onReadiness: @escaping @Sendable (CInt, EventLoop.Readiness) -> Void
    ) {
        self.loop = loop
        self.watchdog = watchdog
        self.onReadiness = onReadiness
    }

    /// Returns whether libcurl waits for events of a socket.
    func isAwaited(_ descriptor: CInt) -> Bool { watches[descriptor]?.interest != nil }

    /// Watches a socket for the given events.
    ///
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    mutating func watch(_ descriptor: CInt, for interest: EventLoop.Interest) throws(SystemError) {
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

    /// Records that libcurl waits for no events of a socket, but keeps it registered.
    mutating func setUnused(_ descriptor: CInt) {
        watches[descriptor]?.interest = nil
    }

    /// Stops watching a socket. Must be called before it is closed, because the kernel may reuse its descriptor.
    mutating func remove(_ descriptor: CInt) {
        guard let watch = watches.removeValue(forKey: descriptor) else { return }
        if let aborted = watchdog.remove(descriptor) { removedAborted.append(aborted) }
        loop.unregister(watch.registration)
    }

    mutating func removeAll() {
        for descriptor in watches.keys { remove(descriptor) }
    }

    /// Drops the records of closed connections, once their transfers have ended.
    mutating func forgetAborted(_ connections: [TurnWatchdog.AbortedConnection]) {
        removedAborted.removeAll { removed in connections.contains { $0.ends == removed.ends } }
    }

    /// Returns the connections that the watchdog has shut down, whether libcurl has closed them yet or not.
    mutating func takeAborted() -> [TurnWatchdog.AbortedConnection] {
        defer { removedAborted = [] }
        let open = watchdog.abortedConnections
        return open.isEmpty ? removedAborted : removedAborted + open.filter { watches[$0.key] != nil }.values
    }
}

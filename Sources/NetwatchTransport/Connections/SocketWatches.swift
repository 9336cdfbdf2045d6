internal import CNetwatchCurl
internal import NetwatchEventLoop

/// The sockets of a multi handle that the loop watches. They are confined to the loop's thread.
struct SocketWatches {
    /// A socket that the loop watches.
    private struct Watch {
        let registration: EventLoop.Registration
        /// The events for which libcurl waits; `nil` while no transfer uses the connection. An unused socket stays
        /// registered, because the next transfer usually follows soon and needs the same events.
        var interest: EventLoop.Interest?
        /// The events for which the loop watches the socket.
        var watched: EventLoop.Interest
    }

    private let loop: EventLoop
    private let watchdog: TurnWatchdog
    private let onReadiness: @Sendable (CInt, EventLoop.Readiness) -> Void
    private var watches: [CInt: Watch] = [:]
    /// The connections that the watchdog observes.
    private var observed: Set<CInt> = []
    /// The connections that the watchdog has shut down and that were removed since ``takeAborted()``.
    private var removedAborted: [TurnWatchdog.AbortedConnection] = []

    /// Creates an empty set of watches.
    ///
    /// - Parameter onReadiness: Called on the loop with the descriptor of a ready socket and its readiness.
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

    /// Lets the watchdog observe a connection from now on.
    ///
    /// libcurl may read without end in the first turn of a connection, before it asks to watch it: if the thread loses
    /// the CPU during the handshake, it finds all of the server's data when it continues.
    mutating func observe(_ descriptor: CInt) {
        if observed.insert(descriptor).inserted { watchdog.add(descriptor) }
    }

    /// Watches a socket for the given events.
    ///
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    mutating func watch(_ descriptor: CInt, for interest: EventLoop.Interest) throws(SystemError) {
        if let watch = watches[descriptor] {
            // The raw values, because `!=` is not specialized for an option set of another module.
            if watch.watched.rawValue != interest.rawValue {
                try loop.update(watch.registration, to: interest)
            }
            watches[descriptor] = Watch(
                registration: watch.registration,
                interest: interest,
                watched: interest
            )
            return
        }
        let registration = try register(descriptor, for: interest)
        observe(descriptor)
        watches[descriptor] = Watch(registration: registration, interest: interest, watched: interest)
    }

    /// Watches the connection of a transfer that has ended, so that its closure and data without a request are noticed.
    ///
    /// libcurl asks to watch a socket only when it must wait. If a response arrives fast enough, a connection was never
    /// watched. If it cannot be watched, libcurl checks it before its next use.
    mutating func watchUnused(_ descriptor: CInt) {
        guard watches[descriptor] == nil, observed.contains(descriptor),
            let registration = try? register(descriptor, for: .read)
        else { return }
        watches[descriptor] = Watch(registration: registration, interest: nil, watched: .read)
    }

    private func register(
        _ descriptor: CInt,
        for interest: EventLoop.Interest
    ) throws(SystemError) -> EventLoop.Registration {
        let onReadiness = onReadiness
        return try loop.register(descriptor, for: interest) { readiness in
            onReadiness(descriptor, readiness)
        }
    }

    /// Records that libcurl no longer waits for events of a socket. The socket stays registered.
    mutating func setUnused(_ descriptor: CInt) {
        // The accessor that changes a value in place would allocate three times.
        guard var watch = watches[descriptor] else { return }
        watch.interest = nil
        watches[descriptor] = watch
    }

    /// Stops watching a socket until libcurl waits for it, or until a transfer that uses it ends.
    mutating func unwatch(_ descriptor: CInt) {
        if let watch = watches.removeValue(forKey: descriptor) { loop.unregister(watch.registration) }
    }

    /// Stops watching and observing a socket. Must be called before the socket is closed, because the kernel may reuse
    /// its descriptor.
    mutating func remove(_ descriptor: CInt) {
        if observed.remove(descriptor) != nil, let aborted = watchdog.remove(descriptor) {
            removedAborted.append(aborted)
        }
        unwatch(descriptor)
    }

    mutating func removeAll() {
        for descriptor in observed { remove(descriptor) }
    }

    /// Drops the records of connections that the watchdog had shut down. Called when their transfers have ended.
    mutating func forgetAborted(_ connections: [TurnWatchdog.AbortedConnection]) {
        removedAborted.removeAll { removed in connections.contains { $0.ends == removed.ends } }
    }

    /// Returns the connections that the watchdog has shut down: those that libcurl has not closed yet, and those that
    /// were removed since the last call.
    mutating func takeAborted() -> [TurnWatchdog.AbortedConnection] {
        defer { removedAborted = [] }
        let open = watchdog.abortedConnections
        return open.isEmpty
            ? removedAborted : removedAborted + open.filter { observed.contains($0.key) }.values
    }
}

internal import CNetwatchCurl
internal import CNetwatchLinux
internal import Glibc
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

/// A connection that the watchdog observes. The number distinguishes it from earlier connections with the same
/// descriptor, because the kernel reuses descriptors.
struct WatchedSocket: Hashable, Sendable {
    let descriptor: CInt
    let number: UInt64

    /// Returns the number of bytes read from a connection so far: the bytes received minus those not read yet.
    ///
    /// The number is 0 for sockets other than TCP. No caller needs it there: over a unix socket libcurl speaks HTTP/1.1,
    /// which has no frames that could keep it busy.
    static func readBytes(of descriptor: CInt) -> UInt64 {
        var waiting: CInt = 0
        guard let counts = byteCounts(of: descriptor), netwatch_unread_bytes(descriptor, &waiting) == 0
        else { return 0 }
        return counts.received - min(counts.received, UInt64(max(0, waiting)))
    }

    /// Returns the number of bytes that the peer's kernel has acknowledged, and the number of bytes received from the
    /// peer. Returns `nil` for a socket that is not TCP.
    private static func byteCounts(of descriptor: CInt) -> (acknowledged: UInt64, received: UInt64)? {
        // The offset of tcpi_bytes_acked in `struct tcp_info` of <linux/tcp.h>. The next field is tcpi_bytes_received.
        // The C library's struct lacks both.
        let offset = 120
        return withUnsafeTemporaryAllocation(byteCount: offset + 16, alignment: 8) { info in
            var length = socklen_t(info.count)
            guard getsockopt(descriptor, CInt(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
                length >= info.count
            else { return nil }
            return (
                info.load(fromByteOffset: offset, as: UInt64.self),
                info.load(fromByteOffset: offset + 8, as: UInt64.self)
            )
        }
    }

    static func localPort(of descriptor: CInt) -> Int {
        WatchedSocket(descriptor: descriptor, number: 0).address(getsockname).port
    }

    /// Returns the peer; `nil` for a unix socket.
    static func peer(of descriptor: CInt) -> ConnectionPeer? {
        let (address, port) = WatchedSocket(descriptor: descriptor, number: 0).address(getpeername)
        return address.map { ConnectionPeer(address: $0, port: UInt16(port)) }
    }

    /// Returns whether a socket has nothing to read: neither data nor the end of the stream.
    static func isQuiet(_ descriptor: CInt) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 0
    }

    /// Shuts a connection down and reads what has arrived. libcurl then detects that the connection is closed. As long
    /// as there is something to read, it takes the connection for an open one.
    static func discard(_ descriptor: CInt) {
        shutdown(descriptor, CInt(SHUT_RDWR))
        withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 1) { buffer in
            while recv(descriptor, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT)) > 0 {}
        }
    }

    /// Returns the number of sent bytes that the peer's kernel has not acknowledged; 0 for a socket that is not TCP.
    static func unacknowledgedBytes(of descriptor: CInt) -> Int {
        byteCounts(of: descriptor) == nil ? 0 : queuedBytes(of: descriptor)
    }

    /// Returns the number of bytes in the socket's send queue.
    private static func queuedBytes(of descriptor: CInt) -> Int {
        var count: CInt = 0
        return netwatch_unacknowledged_bytes(descriptor, &count) == 0 ? Int(count) : 0
    }

    /// Returns the number of bytes that the peer's kernel has acknowledged; 0 for a socket that is not TCP.
    static func acknowledgedBytes(of descriptor: CInt) -> UInt64 {
        byteCounts(of: descriptor)?.acknowledged ?? 0
    }

    /// Returns the number of bytes that this machine's kernel has accepted for sending to the peer; `nil` for a socket
    /// that is not TCP.
    static func sentBytes(of descriptor: CInt) -> UInt64? {
        byteCounts(of: descriptor).map { $0.acknowledged + UInt64(queuedBytes(of: descriptor)) }
    }

    /// Makes close(2) reset the connection. Without this option, the kernel continues to send unacknowledged data after
    /// the close.
    static func discardUnacknowledgedOnClose(_ descriptor: CInt) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    var ends: ConnectionEnds {
        ConnectionEnds(
            localPort: address(getsockname).port,
            remotePort: address(getpeername).port,
            remoteAddress: address(getpeername).address?.description
        )
    }

    private func address(
        _ get: (CInt, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt
    ) -> (address: IPAddress?, port: Int) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout.size(ofValue: storage))
        let result = withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { get(descriptor, $0, &length) }
        }
        guard result == 0 else { return (nil, 0) }
        return withUnsafeBytes(of: storage) { bytes in
            let port = Int(bytes[2]) << 8 | Int(bytes[3])
            switch CInt(storage.ss_family) {
            case AF_INET: return (IPAddress(bytes: Array(bytes[4..<8])), port)
            case AF_INET6: return (IPAddress(bytes: Array(bytes[8..<24])), port)
            default: return (nil, 0)
            }
        }
    }

    /// Shuts the connection down in both directions. libcurl can still read the data that has already arrived, and then
    /// reads the end of the stream. If the peer sends more, the kernel resets the connection.
    func shutDown() {
        shutdown(descriptor, CInt(SHUT_RDWR))
    }
}

internal import CNetwatchLinux
internal import Glibc
internal import Logging
internal import NetwatchEventLoop

/// Accepts connections on its own event loop and passes them on. Checks every second that the path still leads to its
/// socket, and otherwise binds the path again.
///
/// NIO does not accept the connections, because it would open them without close-on-exec. A program that this process
/// starts before the flag is set would inherit them.
final class ControlListener: Sendable {
    /// The listener's dependencies. All closures are called on the listener's thread.
    struct Dependencies: Sendable {
        /// Claims the path and opens the socket with the given permissions.
        let open: @Sendable (SocketPermissions) throws(ControlSocketError) -> ListeningSocket
        /// Takes over the socket of the service manager. Called once, instead of `open`; `nil` if there is none.
        var adopt: (@Sendable (SocketPermissions) throws(ControlSocketError) -> ListeningSocket)?
        /// Closes connections to make room for another one. Returns how long to wait before accepting it; `nil` if it
        /// can be accepted now.
        let acceptDelay: @Sendable () -> Duration?
        /// Takes ownership of a connection. Returns `false` if it should be served, but too few descriptors are left.
        /// Then the connection still belongs to the caller.
        let onConnection: @Sendable (AcceptedConnection) -> Bool
        /// Called every second.
        let onTick: @Sendable () -> Void
        /// Makes the event loop watch the listening descriptor. Tests replace it to simulate failures.
        var register:
            @Sendable (EventLoop, CInt, @escaping @Sendable () -> Void) throws(SystemError)
                -> EventLoop.Registration = { loop, descriptor, body throws(SystemError) in
                    try loop.register(descriptor, for: .read) { _ in body() }
                }
        let logger: Logger
    }

    private struct State: ~Copyable {
        /// The bound socket; `nil` while the path cannot be bound again, and after a stop.
        var socket: ListeningSocket?
        /// The permissions of the socket.
        var permissions: SocketPermissions
        /// Who can connect, as far as it was logged.
        var admission: SocketAdmission?
        var registration: EventLoop.Registration?
        /// Whether accepting is paused.
        var isPaused = false
        var isStopped = false
        /// Whether descriptors or memory ran out and no connection was accepted since then.
        var hasShortage = false
        /// The last error of the path or the socket. An error that repeats is logged only once.
        var obstacle: ControlSocketError?
    }

    private let loop: EventLoop
    private let dependencies: Dependencies
    private let spare = SpareDescriptor()
    private let state: Lock<State>

    /// The maximum number of connections that are accepted before other events of the loop are handled. A client that
    /// connects in a loop fills the backlog as fast as the service empties it. If it is full, connect(2) of other
    /// clients fails.
    private static let batch = 64
    /// How long accepting pauses when descriptors or memory run out. The waiting connection keeps the listener
    /// readable, so without a pause the listener would retry in a busy loop.
    private static let pause = Duration.milliseconds(100)
    /// How often the path is checked. inotify(7) would need special cases for a directory that is removed, replaced or
    /// mounted over.
    private static let interval = Duration.seconds(1)

    /// Claims the path or takes over the socket of the service manager, and starts accepting.
    ///
    /// - Parameter permissions: The permissions of a unix socket. Default: only its owner and root can connect.
    init(
        _ dependencies: Dependencies,
        permissions: SocketPermissions = SocketPermissions()
    ) throws(ControlSocketError) {
        self.dependencies = dependencies
        let open = dependencies.adopt ?? dependencies.open
        let socket = try open(permissions)
        let admission = socket.admission
        do throws(SystemError) {
            loop = try EventLoop(label: "nw-control")
            state = Lock(State(socket: socket, permissions: permissions))
            try watch()
        } catch {
            throw .system(error)
        }
        log(admission)
        scheduleTick()
    }

    /// Stops accepting, removes the path and releases the lock. The kernel resets connections that were not accepted
    /// yet. A path of the service manager stays, and so do these connections.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            unwatch(&state)
            state.socket = nil
        }
    }

    /// Changes the permissions of a unix socket, now and when the path is bound again.
    func use(_ permissions: SocketPermissions) throws(ControlSocketError) {
        let admission: SocketAdmission?
        do throws(SystemError) {
            admission = try state.withLock { state throws(SystemError) in
                let admission = try state.socket?.apply(permissions)
                state.permissions = permissions
                return admission
            }
        } catch {
            throw .system(error)
        }
        log(admission)
    }

    private func watch() throws(SystemError) {
        try state.withLock { state throws(SystemError) in
            guard let descriptor = state.socket?.descriptor, state.registration == nil else { return }
            state.registration = try dependencies.register(loop, descriptor) { [weak self] in self?.accept() }
        }
    }

    private func unwatch(_ state: inout State) {
        if let registration = state.registration { loop.unregister(registration) }
        state.registration = nil
    }
}

// MARK: - Accepting

extension ControlListener {
    /// Accepts the connections that wait, at most ``batch``. If more wait, the loop reports that in its next turn.
    private func accept() {
        do throws(SystemError) {
            for _ in 0..<Self.batch {
                if let delay = dependencies.acceptDelay() { return pause(for: delay) }
                guard let connection = try acceptOne() else { return }
                guard dependencies.onConnection(connection) else {
                    spare.refuse(FileDescriptor(owning: connection.descriptor))
                    return reportShortage(of: SystemError(call: "accept4", errno: EMFILE))
                }
                if !connection.isReserved { state.withLock { $0.hasShortage = false } }
            }
        } catch {
            failed(error)
        }
    }

    /// Accepts under the lock. Otherwise ``stop()`` could close the descriptor, and another file could reuse its
    /// number.
    private func acceptOne() throws(SystemError) -> AcceptedConnection? {
        try state.withLock { state throws(SystemError) in
            guard let listener = state.socket?.descriptor else { return nil }
            let flags = CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let descriptor = try systemCall("accept4") { accept4(listener, nil, nil, flags) }
            return try AcceptedConnection(descriptor, isLocal: state.socket?.isLocal == true)
        }
    }

    /// Accepts connections with the only descriptor that is left, until one of them should be served. Returns the
    /// descriptor of that connection, which has no response yet; `nil` if there is none.
    private func acceptWithSpare() throws(SystemError) -> CInt? {
        for _ in 0..<Self.batch {
            guard let connection = try acceptOne() else { return nil }
            if !dependencies.onConnection(connection) { return connection.descriptor }
        }
        return nil
    }

    private func failed(_ error: SystemError) {
        switch error.errno {
        case EAGAIN, ECONNABORTED:
            return
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            if [EMFILE, ENFILE].contains(error.errno) {
                spare.refuse { () throws(SystemError) in try acceptWithSpare() }
            }
            reportShortage(of: error)
        default:
            log(error)
        }
    }

    private func reportShortage(of error: SystemError) {
        pause(for: Self.pause)
        let isNew = state.withLock { state in
            defer { state.hasShortage = true }
            return !state.hasShortage
        }
        // Accepting is retried ten times a second, so only the first failure is logged.
        if isNew { log(error) }
    }

    private func log(_ error: SystemError) {
        dependencies.logger.warning("could not accept a control connection", metadata: ["error": "\(error)"])
    }

    /// Logs who can connect if that has changed.
    ///
    /// - Parameter admission: Who can connect; `nil` if the socket has no permissions.
    private func log(_ admission: SocketAdmission?) {
        guard let admission else { return }
        let isNew = state.withLock { state in
            defer { state.admission = admission }
            return state.admission != admission
        }
        guard isNew else { return }
        let logger = dependencies.logger
        switch admission {
        case .owner:
            logger.info("only root and the user of the service can connect to the control socket")
        case .groups(let groups):
            let names = groups.map { "`\($0.name)`" }.joined(separator: ", ")
            logger.info("members of these groups can connect to the control socket: \(names)")
        case .everyone(let error):
            let reason = error.map { "\($0)" } ?? "unknown"
            logger.warning(
                "every user can connect to the control socket, because it cannot have an access control list: \(reason)"
            )
        }
    }

    private func pause(for delay: Duration) {
        state.withLock { state in
            unwatch(&state)
            state.isPaused = true
        }
        loop.schedule(at: .now + delay) { [weak self] in
            guard let self else { return }
            state.withLock { $0.isPaused = false }
            do throws(SystemError) { try watch() } catch { report(.system(error)) }
        }
    }
}

// MARK: - The path

extension ControlListener {
    private func scheduleTick() {
        loop.schedule(at: .now + Self.interval) { [weak self] in
            guard let self, !state.withLock({ $0.isStopped }) else { return }
            checkPath()
            dependencies.onTick()
            scheduleTick()
        }
    }

    private func checkPath() {
        do throws(ControlSocketError) {
            if !isInPlace { try replaceSocket() }
            if !state.withLock({ $0.isPaused }) { try watchAgain() }
            state.withLock { $0.obstacle = nil }
        } catch {
            report(error)
        }
    }

    private var isInPlace: Bool { state.withLock { $0.isStopped || $0.socket?.isInPlace == true } }

    /// Registers the socket with the event loop again, if the kernel refused the registration earlier because it was
    /// out of memory or the limit of epoll watches was reached. Without a retry no connection would ever be accepted.
    private func watchAgain() throws(ControlSocketError) {
        do throws(SystemError) { try watch() } catch { throw .system(error) }
    }

    private func replaceSocket() throws(ControlSocketError) {
        if dropSocket() {
            dependencies.logger.warning("the control socket was removed or replaced; binding it again")
        }
        try bindAgain()
    }

    private func report(_ error: ControlSocketError) {
        let isNew = state.withLock { state in
            defer { state.obstacle = error }
            return state.obstacle != error
        }
        guard isNew else { return }
        dependencies.logger.error(
            "could not serve the control socket; retrying every second",
            metadata: ["error": "\(error)"]
        )
    }

    /// Closes the socket, which clients can no longer reach. Accepts the connections in its backlog before that.
    /// Returns whether there was a socket.
    private func dropSocket() -> Bool {
        while let connection = try? acceptOne() {
            if !dependencies.onConnection(connection) { close(connection.descriptor) }
        }
        return state.withLock { state in
            guard state.socket != nil else { return false }
            unwatch(&state)
            state.socket = nil
            return true
        }
    }

    private func bindAgain() throws(ControlSocketError) {
        try state.withLock { state throws(ControlSocketError) in
            guard !state.isStopped else { return }
            state.socket = try dependencies.open(state.permissions)
        }
        dependencies.logger.notice("the control socket is bound again")
        log(state.withLock { $0.socket?.admission })
    }
}

/// A descriptor held in reserve, so that the service can respond to a client even if no other descriptor is free.
///
/// Without the response, the connection would wait in the listener's backlog, and the client could not tell a shortage
/// from a service that hangs.
final class SpareDescriptor: Sendable {
    /// The maximum number of bytes that are read from a client: twice the longest body, which leaves space for headers
    /// and chunk sizes.
    private static let longestRequest = 2 * ControlServer.Limits().bodyBytes
    private static let response = ControlResponse(.shortOfDescriptors).lastMessage

    /// How long one client may take to send its request and to read the response.
    private let timeout: Duration
    private let spare: Lock<FileDescriptor?>

    /// - Parameter timeout: How long ``refuse(_:)`` waits for the client. Default 50 ms.
    init(timeout: Duration = .milliseconds(50)) {
        self.timeout = timeout
        spare = Lock(try? FileDescriptor.opening("/dev/null"))
    }

    /// Closes the spare descriptor, so that one connection can be accepted. Responds to it with 503 and closes it.
    /// Blocks until the client has closed the connection, but not longer than the timeout.
    func refuse(_ accept: () throws(SystemError) -> CInt?) {
        spare.withLock { spare in
            spare = nil
            if let connection = try? accept() { refuse(FileDescriptor(owning: connection)) }
            spare = try? FileDescriptor.opening("/dev/null")
        }
    }

    /// Responds to a connection with 503 and closes it. Blocks until the client has closed it, but not longer than the
    /// timeout.
    func refuse(_ connection: consuming FileDescriptor) {
        Self.respond(to: connection, until: .now + timeout)
    }

    private static func respond(to connection: consuming FileDescriptor, until end: ContinuousClock.Instant) {
        let descriptor = connection.rawValue
        guard isReadable(descriptor, before: end) else { return }
        _ = send(descriptor, response, response.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
        shutdown(descriptor, CInt(SHUT_WR))
        discardInput(descriptor, until: end)
    }

    /// Reads until the client closes the connection. If the service closed it earlier, the client's writes would fail.
    /// If it closed it with unread bytes, the kernel would send a reset, and the client might not read the response.
    private static func discardInput(_ descriptor: CInt, until end: ContinuousClock.Instant) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var rest = longestRequest
        while rest > 0, isReadable(descriptor, before: end) {
            let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            guard count > 0 else { return }
            rest -= count
        }
    }

    /// Waits until the descriptor has bytes to read or the client has closed it. Returns `false` if neither happens
    /// before `end`.
    private static func isReadable(_ descriptor: CInt, before end: ContinuousClock.Instant) -> Bool {
        var pending = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let milliseconds = max(.zero, end - .now) / .milliseconds(1)
        return poll(&pending, 1, CInt(milliseconds)) == 1
    }
}

internal import Glibc
package import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NetwatchEventLoop

/// A server of the control API: HTTP/1.1 on a unix socket or on a TCP port.
///
/// One thread accepts connections, and another one serves them. Handlers run as tasks. Methods can be called from any
/// thread.
package final class ControlServer: Sendable {
    private let listener: ControlListener
    private let connections: ControlConnections
    /// The value of ``Limits/stopGrace`` for the next stop.
    private let stopGrace: Lock<Duration>

    /// The thread that serves the connections of all servers of the process. It is never shut down: a handler may run
    /// longer than the grace period of a stop, and still needs it then.
    private static let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// Claims the path and starts to serve it.
    ///
    /// - Parameters:
    ///   - path: At most 107 bytes, the size of `sun_path` in `unix(7)`. A lock file `<path>.lock` is created next to
    ///     it.
    ///   - permissions: Who may connect. Default: only the user of this process and root.
    ///   - router: The handlers.
    ///   - limits: The limits of connections, sizes and times.
    ///   - logger: Receives failures that no client can see.
    ///   - inherited: A socket that listens on the path and belongs to the service manager, which keeps the path.
    ///     Default `nil`: the server claims the path.
    ///   - prepare: Creates the directory of the path. Called each time before the path is claimed: at the start, and
    ///     after the file of the socket was removed or replaced.
    /// - Throws: ``ControlSocketError``, and the errors of `prepare`.
    package init(
        path: String,
        permissions: SocketPermissions = SocketPermissions(),
        router: ControlRouter,
        limits: Limits = Limits(),
        logger: Logger,
        inherited: CInt? = nil,
        prepare: @escaping @Sendable () throws(ControlSocketError) -> Void = {}
    ) throws(ControlSocketError) {
        stopGrace = Lock(limits.stopGrace)
        let connections = ControlConnections(group: Self.loops, router: router, limits: limits)
        self.connections = connections
        var dependencies = ControlListener.Dependencies(
            open: { (permissions) throws(ControlSocketError) in
                try prepare()
                return .unix(try ControlSocket.claiming(path, for: permissions))
            },
            connections,
            logger
        )
        if let inherited {
            dependencies.adopt = { (permissions) throws(ControlSocketError) in
                ListeningSocket.unix(try ControlSocket.adopting(inherited, at: path, for: permissions))
            }
        }
        listener = try ControlListener(dependencies, permissions: permissions)
    }

    /// Listens on a TCP address and starts to serve it. Any user of the machine can connect, so the router must not have
    /// handlers that change anything.
    ///
    /// - Parameters:
    ///   - address: The address and port.
    ///   - router: The handlers.
    ///   - limits: The limits of connections, sizes and times.
    ///   - logger: Receives failures that no client can see.
    ///   - inherited: A socket that listens on the address and belongs to the service manager. Default `nil`: the
    ///     server opens the port.
    /// - Throws: ``ControlSocketError``.
    package init(
        address: WebAddress,
        router: ControlRouter,
        limits: Limits,
        logger: Logger,
        inherited: CInt? = nil
    ) throws(ControlSocketError) {
        stopGrace = Lock(limits.stopGrace)
        let connections = ControlConnections(group: Self.loops, router: router, limits: limits)
        self.connections = connections
        var dependencies = ControlListener.Dependencies(
            open: { (_) throws(ControlSocketError) in try .listening(on: address) },
            connections,
            logger
        )
        if let inherited {
            dependencies.adopt = { (_) throws(ControlSocketError) in
                try ListeningSocket.adopting(inherited, of: address)
            }
        }
        listener = try ControlListener(dependencies)
    }

    /// Changes the permissions of the socket, and the maximum number of connections of each user without full access.
    /// Existing connections stay open.
    ///
    /// - Throws: ``ControlSocketError`` if the permissions cannot be changed. Then nothing was changed.
    package func admit(_ permissions: SocketPermissions, userConnections: Int) throws(ControlSocketError) {
        try listener.use(permissions)
        connections.setUserConnections(userConnections)
    }

    /// Replaces ``Limits/stopGrace`` for the next stop.
    package func use(stopGrace: Duration) {
        self.stopGrace.withLock { $0 = stopGrace }
    }

    /// Stops the server: removes the socket, waits up to ``Limits/stopGrace`` for requests in flight, and closes the
    /// remaining connections.
    ///
    /// Closing a connection cancels the task of its handler. Stopping twice has no effect.
    package func stop() async {
        listener.stop()
        await connections.stop(grace: stopGrace.withLock { $0 })
    }

    deinit {
        listener.stop()
    }
}

extension ControlListener.Dependencies {
    fileprivate init(
        open: @escaping @Sendable (SocketPermissions) throws(ControlSocketError) -> ListeningSocket,
        _ connections: ControlConnections,
        _ logger: Logger
    ) {
        self.init(
            open: open,
            acceptDelay: { connections.acceptDelay() },
            onConnection: { connections.take($0) },
            onTick: { connections.cleanUp() },
            logger: logger
        )
    }
}

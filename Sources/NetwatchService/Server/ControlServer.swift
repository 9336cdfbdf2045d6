internal import Glibc
package import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// The control API: HTTP/1.1 on a unix socket.
///
/// One thread accepts connections, another one serves them. Handlers run as tasks. Methods can be called from any
/// thread.
package final class ControlServer: Sendable {
    private let listener: ControlListener
    private let connections: ControlConnections
    private let limits: Limits

    /// The only thread for the connections of the process. It is never shut down, because a handler that outlives the
    /// grace period of a stop still needs it.
    private static let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// Claims the path and serves it.
    ///
    /// - Parameters:
    ///   - path: At most 107 bytes, the `sun_path` of `unix(7)`. A lock file `<path>.lock` is created next to it.
    ///   - mode: The permissions of the socket. Clients need write permission to connect. Default 0660.
    ///   - router: The handlers.
    ///   - limits: The limits of connections, sizes and times.
    ///   - logger: Logs failures that no client can see.
    ///   - prepare: Creates the directory of the path. Called before the path is claimed, and before it is claimed
    ///     again after its file was removed or replaced.
    /// - Throws: ``ControlSocketError``, and the errors of `prepare`.
    package init(
        path: String,
        mode: UInt32 = 0o660,
        router: ControlRouter,
        limits: Limits = Limits(),
        logger: Logger,
        prepare: @escaping @Sendable () throws(ControlSocketError) -> Void = {}
    ) throws(ControlSocketError) {
        self.limits = limits
        let connections = ControlConnections(group: Self.loops, router: router, limits: limits)
        self.connections = connections
        listener = try ControlListener(
            ControlListener.Dependencies(
                open: { () throws(ControlSocketError) in
                    try prepare()
                    return try ControlSocket.claiming(path, mode: mode)
                },
                acceptDelay: { connections.acceptDelay() },
                onConnection: { connections.serve($0, $1) },
                onTick: { connections.returnMemory() },
                logger: logger
            )
        )
    }

    /// Stops the server: removes the socket, lets requests in flight finish for ``Limits/stopGrace``, then closes the
    /// remaining connections.
    ///
    /// The tasks of handlers that still run after that are cancelled. Stopping twice has no effect.
    package func stop() async {
        listener.stop()
        await connections.stop(grace: limits.stopGrace)
    }

    deinit {
        listener.stop()
    }
}

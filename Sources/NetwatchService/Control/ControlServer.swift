internal import Glibc
package import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// The control API: HTTP/1.1 on a unix socket.
///
/// One thread accepts, one serves; handlers run as tasks. Callable from any thread.
package final class ControlServer: Sendable {
    /// Where the server listens.
    package let path: String

    private let listener: ControlListener
    private let connections: ControlConnections
    private let limits: Limits

    /// The process's one thread of connections. Never shut down: a handler that outlives the grace of a
    /// stop must still find it.
    private static let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// Claims the path and serves it.
    ///
    /// - Parameters:
    ///   - path: At most 107 bytes, the `sun_path` of `unix(7)`. A lock file `<path>.lock` is made beside.
    ///   - mode: The permissions of the socket; who may connect needs write permission. Default 0660.
    ///   - router: Who answers what.
    ///   - limits: What is bounded, and where.
    ///   - logger: Told of failures that no client sees.
    ///   - prepare: Makes the path's directory. Called before the path is claimed, and before it is claimed again
    ///     after its file was removed or replaced.
    /// - Throws: ``ControlSocketError``, and what `prepare` throws.
    package init(
        path: String,
        mode: UInt32 = 0o660,
        router: ControlRouter,
        limits: Limits = Limits(),
        logger: Logger,
        prepare: @escaping @Sendable () throws(ControlSocketError) -> Void = {}
    ) throws(ControlSocketError) {
        self.path = path
        self.limits = limits
        let connections = ControlConnections(group: Self.loops, router: router, limits: limits)
        self.connections = connections
        listener = try ControlListener(
            ControlListener.Environment(
                open: { () throws(ControlSocketError) in
                    try prepare()
                    return try ControlSocket.claiming(path, mode: mode)
                },
                makeRoom: { connections.makeRoom() },
                onConnection: { connections.serve($0, $1) },
                onTick: { connections.returnMemory() },
                logger: logger
            )
        )
    }

    /// Stops: removes the socket, lets requests in flight finish for ``Limits/stopGrace``, closes the rest.
    ///
    /// A handler that still runs then sees its task cancelled. Stopping twice does no harm.
    package func stop() async {
        listener.stop()
        await connections.stop(grace: limits.stopGrace)
    }

    deinit {
        listener.stop()
    }
}

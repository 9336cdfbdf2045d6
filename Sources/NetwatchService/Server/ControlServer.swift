internal import Glibc
package import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NetwatchEventLoop
internal import OfflineQueue

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

extension ControlServer {
    /// The limits of the server, so that no client can take too much memory, time or descriptors. If a request exceeds
    /// a limit, the response is problem+json, unless HTTP no longer allows a response.
    package struct Limits: Hashable, Sendable {
        // MARK: Requests served at once. When a class is full, the response to another request of it is 503 `busy`. One
        // user without full access can use a quarter of each of these limits, and all such users seven eighths; see
        // ``SharedLimit``.

        /// The maximum number of ``ConnectionClass/call`` requests. Default 128.
        package var calls = 128
        /// The maximum number of ``ConnectionClass/send`` requests. Default 256.
        package var sends = 256
        /// The maximum number of ``ConnectionClass/wait`` requests. Default 1024.
        package var waits = 1024
        /// The maximum number of ``ConnectionClass/upload`` requests. Default 24, each with a body of at most
        /// ``bodyBytes``.
        package var uploads = 24
        /// The maximum total bytes of the bodies of the requests that are served in one class. Default 16 MiB. A single
        /// body may exceed it. The share of one user does not apply to bodies of at most ``smallBodyBytes``. The limit
        /// does not apply to ``ConnectionClass/upload``, where only the number of bodies and ``bodyBytes`` limit the total.
        package var servedBytes = 16 << 20

        // MARK: Connections whose request is not being served. When a limit is exceeded, the oldest one of the user with
        // most of them is closed.

        /// The maximum number of connections that have not sent a complete request. Default 1024.
        package var arrivingConnections = 1024
        /// The minimum age of a connection without a complete request before it may be closed to accept another one.
        /// Default 1 s. If ``arrivingConnections`` is reached and all of these connections are younger, the server
        /// stops accepting until one of them is old enough.
        package var arrivalGrace = Duration.seconds(1)
        /// The maximum number of connections kept alive between two requests. Default 256.
        package var idleConnections = 256
        /// The maximum number of connections with a response that the client has not read completely. Default 256.
        package var respondingConnections = 256
        /// The maximum total bytes of responses that clients have not read completely. Default 24 MiB. A single
        /// response may exceed it.
        package var respondingBytes = 24 << 20
        /// The maximum number of connections whose last response was sent and that wait for ``lingerDeadline``. Default
        /// 128.
        package var lingeringConnections = 128
        /// The maximum number of connections that stay open after the server has refused to serve them, so that their
        /// clients can read the response. Default 128.
        package var refusedConnections = 128
        /// The maximum number of open connections of each user without full access, at most a quarter of
        /// ``arrivingConnections``. Default 64. The response on a further connection is 429.
        package var userConnections = 64

        // MARK: Sizes

        /// The maximum bytes of the request target, the header names and the header values in total. Default 16 KiB.
        /// The response to a larger request is 431.
        package var headerBytes = 16 * 1024
        /// The maximum bytes of the target, of one header name or of one header value. Default 8 KiB. The response to a
        /// larger request is 431.
        package var headerFieldBytes = 8 * 1024
        /// The maximum number of header fields, including trailers. Default 100. The response to a request with more is
        /// 431.
        package var headerFields = 100
        /// The maximum bytes of a body. Default 1 MiB. The response is 413 as soon as `Content-Length` or the received
        /// bytes exceed it.
        package var bodyBytes = 1024 * 1024
        /// The number of bytes above which a body makes its request an ``ConnectionClass/upload``. Default 32 KiB. A
        /// request with a chunked body is always an upload.
        package var smallBodyBytes = 32 * 1024

        // MARK: Deadlines

        /// The time within which a complete request must arrive; for an upload, its headers. Default 5 s.
        ///
        /// It starts when the connection is accepted, or with the first byte of a later request. Further bytes do not
        /// extend it. After it the response is 408, or the connection is closed if nothing arrived.
        package var headerDeadline = Duration.seconds(5)
        /// The time from the end of an upload's headers to the end of its body. Default 30 s. After it the response is
        /// 408.
        package var bodyDeadline = Duration.seconds(30)
        /// The time for the client to read a response. Default 30 s. After it the connection is closed.
        package var responseDeadline = Duration.seconds(30)
        /// The idle time between two requests of one connection. Default 60 s. After it the connection is closed.
        package var idleTimeout = Duration.seconds(60)
        /// How long the server reads and discards input after the last response of a connection. Default 2 s. A client
        /// that is still sending can then read the response before its write fails.
        package var lingerDeadline = Duration.seconds(2)
        /// The time after which the server sends a heartbeat on a stream without data. Default 15 s.
        package var keepAliveInterval = Duration.seconds(15)
        /// How long ``ControlServer/stop()`` waits for requests in flight. Default 5 s.
        package var stopGrace = Duration.seconds(5)

        package init() {}

        /// Returns how many connections each user without full access may have.
        ///
        /// - Parameter quota: The configured number.
        func userConnections(within quota: Int) -> Int {
            min(quota, SharedLimit(arrivingConnections).value(for: .user))
        }

        /// Returns how many requests of a class may be served at once.
        func connections(of connectionClass: ConnectionClass) -> Int {
            switch connectionClass {
            case .call: calls
            case .send: sends
            case .wait: waits
            case .upload: uploads
            }
        }

        /// Returns the maximum total bytes of the bodies of a class; `nil` if only ``bodyBytes`` limits them.
        func servedBytes(of connectionClass: ConnectionClass) -> Int? {
            connectionClass == .upload ? nil : servedBytes
        }
    }
}

extension ControlServer.Limits {
    private static var counts: [WritableKeyPath<ControlServer.Limits, Int>] {
        [
            \.calls, \.sends, \.waits, \.uploads, \.arrivingConnections, \.idleConnections,
            \.respondingConnections, \.lingeringConnections, \.refusedConnections,
        ]
    }

    /// The maximum number of open connections: the sum of all limits of connections.
    package var connections: Int { Self.counts.reduce(0) { $0 + self[keyPath: $1] } }

    /// Lowers the limits of connections in proportion, so that connections take at most half of the process's
    /// descriptors.
    package mutating func fit(descriptors: Int) {
        let (wanted, available) = (connections, descriptors / 2)
        guard wanted > available else { return }
        for count in Self.counts { self[keyPath: count] = max(1, self[keyPath: count] * available / wanted) }
    }
}

internal import Glibc
internal import NetwatchEventLoop

/// The socket of an open stream, with the events for which the loop watches it.
///
/// It is confined to the loop's thread. Releasing the last reference closes the socket.
final class StreamSocket {
    /// The maximum number of bytes per receive: 64 KiB. The limit keeps a fast connection from delaying the others.
    private static let maximumReceive = 1 << 16

    private let socket: TCPSocket
    private let loop: EventLoop
    private var registration: EventLoop.Registration?
    private(set) var interest: EventLoop.Interest = []

    init(_ socket: TCPSocket, _ loop: EventLoop) {
        self.socket = socket
        self.loop = loop
    }

    /// Watches the socket for the given events.
    ///
    /// If there are none, the socket is unregistered: epoll(7) always reports errors and hang-ups, and would do so
    /// again and again.
    func watch(
        for interest: EventLoop.Interest,
        onReadiness: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        guard interest != self.interest else { return }
        self.interest = interest
        guard !interest.isEmpty else { return unwatch() }
        if let registration { return try loop.update(registration, to: interest) }
        registration = try loop.register(socket.descriptor, for: interest) { _ in onReadiness() }
    }

    func unwatch() {
        if let registration { loop.unregister(registration) }
        registration = nil
        interest = []
    }

    /// Receives the available bytes. Returns `nil` if there are none at the moment, and an empty array at the end of
    /// the stream.
    ///
    /// - Parameter maximum: The maximum number of bytes, 1 or more. With 0, the result would look like the end of the
    ///   stream.
    func receive(atMost maximum: Int) throws(SystemError) -> [UInt8]? {
        do throws(SystemError) {
            return try socket.receive(atMost: min(maximum, Self.maximumReceive))
        } catch  where error.errno == EAGAIN {
            return nil
        }
    }

    /// Sends as many of the bytes as the kernel accepts. Returns their number; `nil` if the kernel accepts none at the
    /// moment.
    func send(_ bytes: ArraySlice<UInt8>) throws(SystemError) -> Int? {
        do throws(SystemError) {
            return try socket.send(bytes)
        } catch  where error.errno == EAGAIN {
            return nil
        }
    }

    /// Shuts down one direction: `SHUT_RD` or `SHUT_WR` of shutdown(2).
    func shutDown(_ direction: Int) {
        socket.shutDown(direction)
    }
}

extension TransferEngine {
    /// Creates a connection for arbitrary bytes. It begins to connect at ``StreamConnection/start()`` or
    /// ``StreamConnection/resume()``.
    ///
    /// - Parameters:
    ///   - host: A name or an IP address. IPv6 addresses have no brackets.
    ///   - port: The port, 1 to 65535. With other values, the connection fails when it begins to connect.
    ///   - connectTimeout: The time limit for name lookup and connection together. Default 15 s.
    ///   - whenEnded: Called on the engine's thread when nothing more can be read or written. All completions of
    ///     earlier reads and writes have been called by then. Default: does nothing.
    package nonisolated func stream(
        to host: String,
        port: Int,
        connectTimeout: Duration = .seconds(15),
        whenEnded: @escaping @Sendable () -> Void = {}
    ) -> StreamConnection {
        var failure: TransferFailure?
        do throws(SystemError) { try startThreads() } catch { failure = .notStarted(error) }
        return StreamConnection(
            to: host,
            port: port,
            connectTimeout: connectTimeout,
            loop: loop,
            resolver: resolver,
            preferredAddresses: preferredAddresses,
            failure: failure,
            whenEnded: whenEnded
        )
    }
}

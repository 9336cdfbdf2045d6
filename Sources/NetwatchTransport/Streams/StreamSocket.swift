internal import Glibc
internal import NetwatchEventLoop

/// The socket of an open stream, and the events for which the loop watches it.
///
/// It is confined to the loop's thread. It is closed when the last reference is released.
final class StreamSocket {
    /// The maximum number of bytes per receive, so that one fast connection does not delay the others.
    private static let maximumReceive = 1 << 16

    private let socket: TCPSocket
    private let loop: EventLoop
    private var registration: EventLoop.Registration?
    private(set) var interest: EventLoop.Interest = []

    init(_ socket: TCPSocket, _ loop: EventLoop) {
        self.socket = socket
        self.loop = loop
    }

    /// Watches the socket for the given events. Without any, it is unregistered: epoll(7) reports errors and hang-ups
    /// always, and repeatedly.
    ///
    /// - Throws: ``SystemError`` of `epoll_ctl`.
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

    /// Receives the available bytes, at least one; an empty array at the end of the stream, `nil` if there are none.
    ///
    /// - Parameter maximum: 1 or more, because an empty result means the end of the stream.
    func receive(atMost maximum: Int) throws(SystemError) -> [UInt8]? {
        do throws(SystemError) {
            return try socket.receive(atMost: min(maximum, Self.maximumReceive))
        } catch  where error.errno == EAGAIN {
            return nil
        }
    }

    /// Sends some of the bytes. Returns their number; `nil` if the kernel accepts none now.
    func send(_ bytes: ArraySlice<UInt8>) throws(SystemError) -> Int? {
        do throws(SystemError) {
            return try socket.send(bytes)
        } catch  where error.errno == EAGAIN {
            return nil
        }
    }

    /// Closes one direction (`SHUT_RD`, `SHUT_WR` of shutdown(2)).
    func shutDown(_ direction: Int) {
        socket.shutDown(direction)
    }
}

internal import Glibc
internal import NetwatchEventLoop

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

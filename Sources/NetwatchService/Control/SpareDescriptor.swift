internal import Glibc
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import Synchronization

/// A descriptor that is held back, so that a client can be told when there is no other.
///
/// Otherwise its connection would wait in the listener's backlog, and the client could not tell a shortage from a service
/// that hangs.
final class SpareDescriptor: Sendable {
    /// How long the request may take to come, in milliseconds.
    private static let timeout: CInt = 20
    private static let response = bytes(of: ControlResponse(.shortOfDescriptors))

    private let spare: Mutex<FileDescriptor?>

    init() {
        spare = Mutex(try? FileDescriptor.opening("/dev/null"))
    }

    /// Accepts one connection in place of the descriptor, answers 503 and closes it.
    func refuse(_ accept: () throws(SystemError) -> CInt?) {
        spare.withLock { spare in
            spare = nil
            if let connection = try? accept() {
                Self.answer(FileDescriptor(owning: connection))
            }
            spare = try? FileDescriptor.opening("/dev/null")
        }
    }

    private static func answer(_ connection: consuming FileDescriptor) {
        let descriptor = connection.rawValue
        var pending = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&pending, 1, timeout) == 1 else { return }
        // A connection that is closed with unread bytes is reset.
        var request = [UInt8](repeating: 0, count: 64 << 10)
        _ = recv(descriptor, &request, request.count, CInt(MSG_DONTWAIT))
        _ = send(descriptor, response, response.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
    }

    private static func bytes(of response: ControlResponse) -> [UInt8] {
        var head = "HTTP/1.1 \(response.status.code) \(response.status.reasonPhrase)\r\n"
        for (name, value) in response.headers { head += "\(name): \(value)\r\n" }
        head += "content-length: \(response.body.count)\r\nconnection: close\r\n\r\n"
        return Array(head.utf8) + response.body
    }
}

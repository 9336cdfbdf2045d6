internal import Glibc
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import Synchronization

/// A descriptor held in reserve, so that a client gets a response even if no other descriptor is free.
///
/// Without it the connection would wait in the listener's backlog, and the client could not distinguish a shortage from
/// a hanging service.
final class SpareDescriptor: Sendable {
    /// How long to wait for the request, in milliseconds.
    private static let timeout: CInt = 20
    private static let response = bytes(of: ControlResponse(.shortOfDescriptors))

    private let spare: Mutex<FileDescriptor?>

    init() {
        spare = Mutex(try? FileDescriptor.opening("/dev/null"))
    }

    /// Closes the spare descriptor, accepts one connection in its place, answers with 503 and closes the connection.
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
        // Reads first, because closing a connection with unread bytes resets it.
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

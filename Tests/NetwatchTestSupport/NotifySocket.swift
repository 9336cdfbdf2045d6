package import Glibc
internal import NetwatchEventLoop

/// The service manager's end of `sd_notify(3)`: a socket that receives the notifications of a service.
package final class NotifySocket: Sendable {
    private let descriptor: FileDescriptor

    /// - Parameter address: A path, or an abstract name (unix(7)) that begins with a NUL.
    package init(_ address: String) throws {
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let number = try systemCall("socket") { socket(AF_UNIX, type, 0) }
        descriptor = FileDescriptor(owning: number)
        _ = try withUnixAddress(address) { pointer, length in
            try systemCall("bind \(address)") { bind(number, pointer, length) }
        }
    }

    /// Waits for the next datagram and returns its text. Blocks the thread without a time limit.
    package func receive() throws -> String {
        var bytes = [UInt8](repeating: 0, count: 8192)
        let number = descriptor.rawValue
        let count = try systemCall("recv") { recv(number, &bytes, bytes.count, 0) }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

/// Calls `body` with the socket address of a path, or of an abstract name (unix(7)) if the text begins with a NUL.
package func withUnixAddress<Result>(
    _ path: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
) rethrows -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let isAbstract = bytes.first == 0
    let length = socklen_t(2 + bytes.count + (isAbstract || bytes.count == 108 ? 0 : 1))
    return try withUnsafePointer(to: &address) { pointer in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body($0, length) }
    }
}

internal import Glibc
internal import NetwatchEventLoop

/// An address of `unix(7)`: a path, or a name in the abstract namespace, which starts with a NUL.
package struct UnixSocketAddress {
    /// The longest path that the kernel accepts, in bytes: `sun_path` without its terminating NUL.
    package static let longestPath = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    private let bytes: [UInt8]
    private let isAbstract: Bool

    /// Returns `nil` for a path that ``init(pathBytes:)`` refuses.
    init?(path: String) { self.init(pathBytes: Array(path.utf8)) }

    /// Returns `nil` for a path that is empty, contains a NUL or is longer than ``longestPath``. The kernel would
    /// truncate a path that is too long, and choose a name if it is empty.
    init?(pathBytes: [UInt8]) {
        bytes = pathBytes
        isAbstract = false
        guard !bytes.isEmpty, bytes.count <= Self.longestPath, !bytes.contains(0) else { return nil }
    }

    /// Returns `nil` if the name is empty, or does not fit into `sun_path` after its leading NUL.
    init?(abstractName: String) {
        bytes = [0] + Array(abstractName.utf8)
        isAbstract = true
        guard !abstractName.isEmpty, bytes.count <= Self.longestPath + 1 else { return nil }
    }

    /// Calls `body` with the address. Its length is exact, because an abstract name has no terminator.
    func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let header = MemoryLayout<sockaddr_un>.offset(of: \.sun_path)!
        let length = socklen_t(header + bytes.count + (isAbstract ? 0 : 1))
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}

/// The kinds of unix sockets that the service creates.
enum UnixSocketKind {
    case stream, datagram
}

/// Creates a non-blocking, close-on-exec unix socket.
func unixSocket(_ kind: UnixSocketKind) throws(SystemError) -> FileDescriptor {
    let type = kind == .stream ? SOCK_STREAM : SOCK_DGRAM
    let flags = CInt(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    return FileDescriptor(owning: try systemCall("socket") { socket(AF_UNIX, flags, 0) })
}

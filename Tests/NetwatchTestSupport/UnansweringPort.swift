internal import Glibc
internal import NetwatchEventLoop

/// A loopback port to which a connection is never established. Its backlog is full, so Linux drops further SYNs
/// (`listen(2)`).
package struct UnansweringPort: ~Copyable {
    package let port: UInt16
    private let listener: FileDescriptor
    private let first: FileDescriptor

    /// - Parameter address: The address of the port. Default: 127.0.0.1. With 0.0.0.0, no loopback address answers.
    package init(address: String = "127.0.0.1") throws {
        let (descriptor, port) = try ListeningSocket.tcp(address, backlog: 0)
        self.init(
            listener: FileDescriptor(owning: descriptor),
            port: port,
            first: try Self.connected(to: port)
        )
    }

    private init(listener: consuming FileDescriptor, port: UInt16, first: consuming FileDescriptor) {
        self.listener = listener
        self.port = port
        self.first = first
    }

    /// Makes the connection that fills the backlog. This connection is established, but never accepted.
    private static func connected(to port: UInt16) throws -> FileDescriptor {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = FileDescriptor(owning: try systemCall("socket") { socket(AF_INET, type, 0) })
        let rawValue = descriptor.rawValue
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        address.sin_port = port.bigEndian
        try withUnsafeBytes(of: &address) { bytes in
            let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            try systemCall("connect") { connect(rawValue, pointer, socklen_t(bytes.count)) }
        }
        return descriptor
    }
}

/// A loopback port that refuses connections. A socket that does not listen is bound to the port, so that no other test
/// gets it.
package struct RefusingPort: ~Copyable {
    package let port: UInt16
    private let descriptor: FileDescriptor

    package init() throws {
        let (descriptor, port) = try ListeningSocket.tcp(backlog: nil)
        self.descriptor = FileDescriptor(owning: descriptor)
        self.port = port
    }

    /// The base URL, without a trailing slash: `http://127.0.0.1:PORT`.
    package var url: String { "http://127.0.0.1:\(port)" }
}

/// Returns a path for a unix socket that no other test uses.
package func temporarySocketPath() -> String {
    "/tmp/netwatch-test-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
}

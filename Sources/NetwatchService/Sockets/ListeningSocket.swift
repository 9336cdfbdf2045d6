internal import CNetwatchLinux
package import Glibc
package import NetwatchEventLoop

/// A listening socket of either kind.
enum ListeningSocket: ~Copyable {
    case unix(ControlSocket)
    case tcp(FileDescriptor)

    var descriptor: CInt {
        switch self {
        case .unix(let socket): socket.listener.rawValue
        case .tcp(let descriptor): descriptor.rawValue
        }
    }

    /// Whether clients are processes whose credentials the kernel knows.
    var isLocal: Bool {
        switch self {
        case .unix: true
        case .tcp: false
        }
    }

    /// Whether clients that connect to the address reach this socket.
    var isInPlace: Bool {
        switch self {
        case .unix(let socket): socket.isInPlace
        case .tcp: true
        }
    }

    /// Who could connect when a unix socket was opened; `nil` for a TCP socket.
    var admission: SocketAdmission? {
        switch self {
        case .unix(let socket): socket.admission
        case .tcp: nil
        }
    }

    /// Changes the permissions of a unix socket. Has no effect on a TCP socket.
    ///
    /// - Returns: Who can connect now; `nil` for a TCP socket, and if the path leads to another file.
    func apply(_ permissions: SocketPermissions) throws(SystemError) -> SocketAdmission? {
        switch self {
        case .unix(let socket): try socket.apply(permissions)
        case .tcp: nil
        }
    }

    /// Listens on a TCP port.
    static func listening(on address: WebAddress) throws(ControlSocketError) -> ListeningSocket {
        do throws(SystemError) {
            return .tcp(try listener(on: address))
        } catch {
            throw .web(address, error)
        }
    }

    /// Takes over a TCP socket that the service manager has bound to the address.
    static func adopting(
        _ descriptor: CInt,
        of address: WebAddress
    ) throws(ControlSocketError) -> ListeningSocket {
        do throws(SystemError) {
            return .tcp(try FileDescriptor.adopting(descriptor))
        } catch {
            throw .web(address, error)
        }
    }

    private static func listener(on address: WebAddress) throws(SystemError) -> FileDescriptor {
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let family = address.address.description.contains(":") ? AF_INET6 : AF_INET
        let listener = FileDescriptor(owning: try systemCall("socket") { socket(family, kind, 0) })
        let descriptor = listener.rawValue
        // Without this option the port would stay in use for a minute after a restart.
        var isOn: CInt = 1
        try systemCall("setsockopt SO_REUSEADDR") {
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<CInt>.size))
        }
        try systemCall("bind") {
            address.address.withSocketAddress(port: address.port) { bind(descriptor, $0, $1) }
        }
        try systemCall("listen") { listen(descriptor, SOMAXCONN) }
        return listener
    }
}

extension FileDescriptor {
    /// Takes ownership of a socket of the service manager, and makes its calls return instead of blocking.
    static func adopting(_ descriptor: CInt) throws(SystemError) -> FileDescriptor {
        let flags = try systemCall("fcntl F_GETFL") { fcntl(descriptor, F_GETFL) }
        try systemCall("fcntl F_SETFL") { fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
        return FileDescriptor(owning: descriptor)
    }
}

/// The credentials of the process at the other end of a unix socket. The kernel recorded them at `connect(2)` or
/// `listen(2)` (`SO_PEERCRED` of `unix(7)`).
package struct PeerCredentials: Hashable, Sendable {
    package let pid: pid_t
    package let uid: uid_t
    package let gid: gid_t
    /// The supplementary groups (`SO_PEERGROUPS`).
    package let groups: [gid_t]

    package init(pid: pid_t, uid: uid_t, gid: gid_t, groups: [gid_t] = []) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = groups
    }

    /// Reads the credentials from a connected unix socket.
    init(ofSocket descriptor: CInt) throws(SystemError) {
        var credentials = netwatch_ucred()
        var size = socklen_t(MemoryLayout<netwatch_ucred>.size)
        try systemCall("getsockopt SO_PEERCRED") {
            getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
        }
        self.init(
            pid: credentials.pid,
            uid: credentials.uid,
            gid: credentials.gid,
            groups: try Self.groups(ofSocket: descriptor)
        )
    }

    /// The number of groups that most users have at most, so that one system call reads them.
    private static let usualGroups = 32

    private static func groups(ofSocket descriptor: CInt) throws(SystemError) -> [gid_t] {
        var groups = [gid_t](repeating: 0, count: usualGroups)
        while true {
            var size = socklen_t(groups.count * MemoryLayout<gid_t>.size)
            let result = getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, &groups, &size)
            let count = Int(size) / MemoryLayout<gid_t>.size
            if result == 0 { return Array(groups.prefix(count)) }
            // The kernel stores the required size when it refuses a small buffer.
            let error = SystemError(call: "getsockopt SO_PEERGROUPS", errno: errno)
            guard error.errno == ERANGE, count > groups.count else { throw error }
            groups = [gid_t](repeating: 0, count: count)
        }
    }
}

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

/// The loopback address and port on which the status page is served.
package struct WebAddress: Hashable, Sendable, CustomStringConvertible {
    package static let acceptedForms = "a loopback address and a port, like `127.0.0.1:9317` or `[::1]:9317`"

    package let address: IPAddress
    package let port: UInt16

    /// Parses `ADDRESS:PORT`. Returns `nil` for other text, for port 0 and for addresses that other machines can reach.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
            port > 0
        else { return nil }
        var host = text[..<colon]
        if host.first == "[", host.last == "]" {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard let address = IPAddress(String(host)), address.isLoopback else { return nil }
        self.address = address
        self.port = port
    }

    package var description: String {
        let host = address.description
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

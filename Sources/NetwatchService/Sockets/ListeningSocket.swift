internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

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

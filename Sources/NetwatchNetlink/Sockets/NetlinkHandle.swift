internal import CNetwatchNetlink
internal import Glibc
internal import NetwatchEventLoop

/// An owner of a connected, non-blocking libnl socket of the route protocol.
///
/// libnl builds and sends messages. This type receives the replies from the descriptor without libnl: libnl maps
/// `ENOBUFS` and `ENOMEM` to the same code, and does not provide the sender's address.
struct NetlinkHandle: ~Copyable {
    /// The result of receiving one datagram.
    enum Received {
        /// A datagram from the kernel, in the memory of the buffer.
        case datagram(UnsafeMutableRawBufferPointer)
        /// No datagram is pending (`EAGAIN`).
        case nothing
        /// Messages were lost. Either the receive buffer was full (`ENOBUFS`), or a datagram did not fit into our
        /// buffer.
        case overrun
        /// A datagram from another process. It is not trusted, because any process with `CAP_NET_ADMIN` can send one.
        case foreign
        case failed(errno: CInt)
    }

    private let socket: OpaquePointer

    /// Opens and connects a socket in the network namespace of the calling thread.
    ///
    /// - Throws: ``SystemError`` of `socket` or `bind`, with `EPERM` or `EACCES` if seccomp or SELinux forbids it, and
    ///   `EPROTONOSUPPORT` or `EAFNOSUPPORT` if the kernel has no netlink.
    static func connected() throws(SystemError) -> NetlinkHandle {
        guard let socket = nl_socket_alloc() else {
            throw SystemError(call: "nl_socket_alloc", errno: ENOMEM)
        }
        let handle = NetlinkHandle(owning: socket)
        try handle.connect()
        return handle
    }

    /// Creates a handle for a duplicate of a netlink socket that another process opened.
    ///
    /// - Throws: ``SystemError``, with `EPROTOTYPE` if the descriptor is not a netlink socket of the route protocol.
    static func adopting(copyOf descriptor: CInt) throws(SystemError) -> NetlinkHandle {
        var domain: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        try systemCall("getsockopt") { getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) }
        guard domain == AF_NETLINK else { throw SystemError(call: "inherited socket", errno: EPROTOTYPE) }
        guard let socket = nl_socket_alloc() else {
            throw SystemError(call: "nl_socket_alloc", errno: ENOMEM)
        }
        let handle = NetlinkHandle(owning: socket)
        try bindIfNeeded(descriptor)
        let copy = try systemCall("fcntl") { fcntl(descriptor, F_DUPFD_CLOEXEC, 3) }
        guard nl_socket_set_fd(socket, NETLINK_ROUTE, copy) == 0 else {
            close(copy)
            throw SystemError(call: "inherited socket", errno: EPROTOTYPE)
        }
        try netlinkCall("nl_socket_set_nonblocking") { nl_socket_set_nonblocking(socket) }
        return handle
    }

    /// Binds the socket if it is not bound yet. The kernel sends no notifications to an unbound socket.
    private static func bindIfNeeded(_ descriptor: CInt) throws(SystemError) {
        var address = sockaddr_nl()
        var length = socklen_t(MemoryLayout<sockaddr_nl>.size)
        try withUnsafeMutablePointer(to: &address) { netlink throws(SystemError) in
            try netlink.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer throws(SystemError) in
                try systemCall("getsockname") { getsockname(descriptor, pointer, &length) }
                if netlink.pointee.nl_pid == 0 {
                    try systemCall("bind") { bind(descriptor, pointer, length) }
                }
            }
        }
    }

    private init(owning socket: OpaquePointer) {
        self.socket = socket
    }

    private func connect() throws(SystemError) {
        try netlinkCall("netlink socket") { nl_connect(socket, NETLINK_ROUTE) }
        try netlinkCall("nl_socket_set_nonblocking") { nl_socket_set_nonblocking(socket) }
        // Replies are recognised by their sequence numbers. Acknowledgements are not needed, and would double the
        // number of messages.
        nl_socket_disable_auto_ack(socket)
    }

    deinit {
        nl_socket_free(socket)
    }

    var descriptor: CInt {
        nl_socket_get_fd(socket)
    }

    /// Joins the multicast groups of a class of notifications.
    func join(_ kind: NetlinkEvent.Class) throws(SystemError) {
        for group in kind.groups {
            try netlinkCall("join netlink group \(group.rawValue)") {
                nl_socket_add_membership(socket, CInt(group.rawValue))
            }
        }
    }

    /// Sends several contiguous messages in one call.
    func send(_ messages: UnsafeRawBufferPointer) throws(SystemError) {
        try systemCall("send netlink requests") {
            Glibc.send(descriptor, messages.baseAddress, messages.count, 0)
        }
    }

    /// Sends a message. Returns the sequence number that its replies will have.
    func send(_ message: borrowing NetlinkRequest) throws(SystemError) -> UInt32 {
        try netlinkCall("send netlink request") { nl_send_auto(socket, message.pointer) }
        return message.sequenceNumber
    }

    /// Returns the next datagram of `buffer`. If it is empty, receives pending datagrams first. Never blocks.
    func receive(into buffer: DatagramBuffer) -> Received {
        if buffer.isEmpty, let error = buffer.fill(from: descriptor) { return Self.failure(error) }
        return buffer.take()
    }

    private static func failure(_ error: CInt) -> Received {
        switch error {
        case EAGAIN: .nothing
        case ENOBUFS: .overrun
        default: .failed(errno: error)
        }
    }

    /// Sets an option of level `SOL_NETLINK`. Returns `false` if the kernel or a sandbox does not support it.
    @discardableResult
    func enable(_ option: CInt) -> Bool {
        var on: CInt = 1
        return setsockopt(descriptor, SOL_NETLINK, option, &on, socklen_t(MemoryLayout<CInt>.size)) == 0
    }

    /// Requests a receive buffer of this size in bytes. A pending notification takes 832 bytes for a route or address
    /// and 2304 for a link (measured on Linux 6.18).
    ///
    /// Without `CAP_NET_ADMIN` in the initial user namespace, which `SO_RCVBUFFORCE` needs, the size is limited to
    /// `net.core.rmem_max`.
    func setReceiveBuffer(_ bytes: CInt) {
        var size = bytes
        let length = socklen_t(MemoryLayout<CInt>.size)
        if setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, length) != 0 {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, length)
        }
    }

    /// The number of messages that the kernel has dropped because the buffer was full, since the socket was opened.
    /// Messages that a filter rejected do not count. Always 0 before Linux 4.12, which does not report the number.
    var dropCount: UInt32 {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: Int(SK_MEMINFO_VARS)) { counters in
            counters.initialize(repeating: 0)
            var length = socklen_t(counters.count * MemoryLayout<UInt32>.size)
            _ = getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, counters.baseAddress, &length)
            return counters[Int(SK_MEMINFO_DROPS)]
        }
    }

    /// Replaces the socket's filter.
    func attach(_ program: [sock_filter]) throws(SystemError) {
        var program = program
        let result = program.withUnsafeMutableBufferPointer { instructions in
            var description = sock_fprog(len: UInt16(instructions.count), filter: instructions.baseAddress)
            let length = socklen_t(MemoryLayout<sock_fprog>.size)
            return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &description, length) == 0 ? 0 : errno
        }
        if result != 0 { throw SystemError(call: "SO_ATTACH_FILTER", errno: result) }
    }
}

/// Calls a function of libnl, and throws a ``SystemError`` with the original `errno` if its result is negative.
///
/// The error code of libnl is not used, because libnl maps several errors to one code.
private func netlinkCall(_ name: String, _ body: () -> CInt) throws(SystemError) {
    errno = 0
    let result = body()
    guard result < 0 else { return }
    throw SystemError(call: name, errno: errno != 0 ? errno : EINVAL)
}

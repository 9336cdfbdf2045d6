internal import CNetwatchNetlink
internal import Glibc
internal import NetwatchEventLoop

/// Owns one connected, non-blocking libnl socket of the route protocol.
///
/// libnl builds and sends the messages. This type receives them directly from the descriptor, because libnl maps
/// `ENOBUFS` and `ENOMEM` to the same code and does not provide the sender's address.
struct NetlinkHandle: ~Copyable {
    /// The result of one receive call.
    enum Received: Equatable {
        /// A datagram of the kernel with this length, at the start of the buffer.
        case datagram(Int)
        /// No datagram is pending (`EAGAIN`).
        case nothing
        /// Messages were lost: the receive buffer was full (`ENOBUFS`), or a datagram did not fit into our buffer.
        case overrun
        /// A datagram from another process, which any process with `CAP_NET_ADMIN` can send. Not trusted.
        case foreign
        case failed(errno: CInt)
    }

    /// The kernel limits dump replies to 32 KiB, and notifications are much smaller.
    static let bufferSize = 64 * 1024

    private let socket: OpaquePointer

    /// Opens and connects a socket in the network namespace of the calling thread.
    ///
    /// - Throws: ``SystemError`` of `socket` or `bind`: `EPERM` or `EACCES` under seccomp and SELinux,
    ///   `EPROTONOSUPPORT` or `EAFNOSUPPORT` if the kernel has no netlink.
    static func connected() throws(SystemError) -> NetlinkHandle {
        guard let socket = nl_socket_alloc() else {
            throw SystemError(call: "nl_socket_alloc", errno: ENOMEM)
        }
        let handle = NetlinkHandle(owning: socket)
        try handle.connect()
        return handle
    }

    /// Uses a duplicate of a netlink socket that another process opened.
    ///
    /// - Throws: ``SystemError``: `EPROTOTYPE` unless it is a netlink socket of the route protocol.
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

    /// Binds the socket if it has no address. The kernel sends no notifications to an unbound socket.
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
        // Sequence numbers match the replies. An acknowledgement for each lookup would double the number of messages.
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

    /// Sends several contiguous messages.
    func send(_ messages: UnsafeRawBufferPointer) throws(SystemError) {
        try systemCall("send netlink requests") {
            Glibc.send(descriptor, messages.baseAddress, messages.count, 0)
        }
    }

    /// Sends a message and returns the sequence number of its replies.
    func send(_ message: borrowing NetlinkRequest) throws(SystemError) -> UInt32 {
        try netlinkCall("send netlink request") { nl_send_auto(socket, message.pointer) }
        return message.sequenceNumber
    }

    /// Receives one datagram into `buffer`. Never blocks.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
        var sender = sockaddr_nl()
        var senderLength = socklen_t(MemoryLayout<sockaddr_nl>.size)
        var count: Int
        repeat {
            count = withUnsafeMutablePointer(to: &sender) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    // With MSG_TRUNC, the result is the real length of the datagram, even if it did not fit.
                    recvfrom(
                        descriptor,
                        buffer.baseAddress,
                        buffer.count,
                        CInt(MSG_DONTWAIT | MSG_TRUNC),
                        $0,
                        &senderLength
                    )
                }
            }
        } while count < 0 && errno == EINTR
        guard count >= 0 else { return Self.failure(errno) }
        if sender.nl_pid != 0 { return .foreign }
        return count <= buffer.count ? .datagram(count) : .overrun
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

    /// Requests a receive buffer of this many bytes. A pending route or address notification takes 832 bytes, a link
    /// notification 2304 (measured on Linux 6.18).
    ///
    /// `SO_RCVBUFFORCE` needs `CAP_NET_ADMIN` in the initial user namespace. Without it, the size is limited to
    /// `net.core.rmem_max`.
    func setReceiveBuffer(_ bytes: CInt) {
        var size = bytes
        let length = socklen_t(MemoryLayout<CInt>.size)
        if setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, length) != 0 {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, length)
        }
    }

    /// The number of messages that the kernel has dropped since the socket was opened because the buffer was full.
    /// Messages rejected by a filter do not count. 0 before Linux 4.12, which does not report it.
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

/// Converts a negative result of a libnl call to a ``SystemError`` with the original `errno`.
///
/// The libnl error code is not used, because libnl maps several errors to one code.
private func netlinkCall(_ name: String, _ body: () -> CInt) throws(SystemError) {
    errno = 0
    let result = body()
    guard result < 0 else { return }
    throw SystemError(call: name, errno: errno != 0 ? errno : EINVAL)
}

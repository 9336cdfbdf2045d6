internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Looks up a path with `connect(2)` on a UDP socket, which sends nothing. `getsockname(2)` then returns the source
/// address that the kernel chose.
///
/// Used in sandboxes that block netlink, and to find the source address of an IPv6 connection that has no route without
/// it; see ``ConnectionRoutes``. The kernel does not report that address by netlink.
///
/// A verdict is either reachable or unknown, never "not reachable", because a sandbox may refuse these calls for
/// unrelated reasons. It contains neither the interface nor its carrier. The socket belongs to the network namespace of
/// the calling thread.
enum ConnectLookup {
    /// The destination port for `connect(2)` if none is known: 9, the discard service (RFC 863). Nothing is sent to it.
    private static let port: in_port_t = 9

    static func verdict(on address: IPAddress, _ options: PathOptions) -> AddressVerdict {
        guard let source = source(towards: address, options), canReply(address, to: source) else {
            return .noNetlink
        }
        let path = NetworkPath(
            destination: address,
            interface: nil,
            gateway: nil,
            source: source,
            isLocal: source == address,
            prefixLength: 0,
            table: 0,
            required: options.source == nil ? [] : .source
        )
        return AddressVerdict(.reachable(path))
    }

    /// Returns whether a host could reply to a source address. A link-local source is valid on the link only.
    private static func canReply(_ address: IPAddress, to source: IPAddress) -> Bool {
        (!source.isLinkLocal || address.isLinkLocal) && (!source.isIPv4LinkLocal || address.isIPv4LinkLocal)
    }

    /// The result of `connect(2)` for an unbound socket.
    enum Outcome: Equatable {
        /// The kernel chose this source address.
        case source(IPAddress)
        /// The kernel refused to connect, with this error.
        case refused(errno: CInt)
        /// A call before `connect(2)` failed, so the kernel was not asked.
        case unavailable
    }

    /// Returns the source address that the kernel chooses for a connection, or the error with which it refuses to
    /// connect.
    ///
    /// The socket has the user ID of the process. Its protocol is UDP, so a rule for UDP alone may refuse it.
    ///
    /// - Throws: ``SystemError`` with one of ``SystemError/shortages``, for example if the process has no free
    ///   descriptor. This says nothing about the route.
    static func connect(for query: RouteQuery) throws(SystemError) -> Outcome {
        guard let socket = openSocket(query.destination.family) else {
            _ = try failure("socket")
            return .unavailable
        }
        if let mark = query.mark, !set(SO_MARK, on: socket.rawValue, to: mark) { return .unavailable }
        if query.outputInterface != 0,
            !set(SO_BINDTOIFINDEX, on: socket.rawValue, to: query.outputInterface)
        {
            return .unavailable
        }
        guard call(Glibc.connect, socket.rawValue, query.destination, port: query.port ?? 0) else {
            return .refused(errno: try failure("connect"))
        }
        return IPAddress(localOf: socket.rawValue).map { .source($0) } ?? .unavailable
    }

    /// Returns the error number of a failed call, or throws its error if it is a shortage.
    private static func failure(_ call: String) throws(SystemError) -> CInt {
        let error = SystemError(call: call, errno: errno)
        if SystemError.shortages.contains(error.errno) { throw error }
        return error.errno
    }

    private static func source(towards address: IPAddress, _ options: PathOptions) -> IPAddress? {
        guard let socket = openSocket(address.family) else { return nil }
        guard apply(options, to: socket.rawValue) else { return nil }
        if let source = options.source, !call(bind, socket.rawValue, source, port: 0) { return nil }
        guard call(Glibc.connect, socket.rawValue, address, port: options.port ?? port) else { return nil }
        return IPAddress(localOf: socket.rawValue)
    }

    private static func openSocket(_ family: IPAddress.Family) -> FileDescriptor? {
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family == .ipv4 ? AF_INET : AF_INET6, type, 0)
        return descriptor < 0 ? nil : FileDescriptor(owning: descriptor)
    }

    /// Applies the options to a socket, and returns whether all were applied. The user ID of a socket cannot be set.
    private static func apply(_ options: PathOptions, to descriptor: CInt) -> Bool {
        if options.userID != nil { return false }
        if let mark = options.mark, !set(SO_MARK, on: descriptor, to: mark) { return false }
        guard let name = options.interface else { return true }
        return setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(name.utf8.count)) == 0
    }

    private static func set(_ option: CInt, on descriptor: CInt, to value: UInt32) -> Bool {
        var value = value
        return setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<UInt32>.size)) == 0
    }

    private typealias SocketCall = (CInt, UnsafePointer<sockaddr>?, socklen_t) -> CInt

    private static func call(
        _ function: SocketCall,
        _ descriptor: CInt,
        _ address: IPAddress,
        port: in_port_t
    ) -> Bool {
        address.withSocketAddress(port: port) { function(descriptor, $0, $1) } == 0
    }
}

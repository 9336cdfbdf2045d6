internal import Glibc
internal import NetwatchEventLoop

/// Looks up a path without netlink, for sandboxes that block netlink.
///
/// `connect(2)` on a UDP socket looks up the route without sending anything. `getsockname(2)` then returns the source
/// address that the kernel chose.
///
/// The result is either reachable or unknown, never "not reachable", because a sandbox may refuse these calls for
/// unrelated reasons. It contains neither the interface nor its carrier. The socket belongs to the network namespace
/// of the calling thread.
enum ConnectLookup {
    /// The destination port for `connect(2)`: 9, the discard service (RFC 863). Nothing is sent to it.
    private static let port: in_port_t = 9

    static func verdict(on address: IPAddress, _ options: PathOptions) -> AddressVerdict {
        guard let source = source(towards: address, options) else { return .noNetlink }
        let path = NetworkPath(
            destination: address,
            interface: nil,
            gateway: nil,
            source: source,
            isLocal: source == address,
            prefixLength: 0,
            table: 0
        )
        return AddressVerdict(.reachable(path))
    }

    private static func source(towards address: IPAddress, _ options: PathOptions) -> IPAddress? {
        let family = address.family == .ipv4 ? AF_INET : AF_INET6
        let descriptor = socket(family, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        let owner = FileDescriptor(owning: descriptor)
        guard apply(options, to: owner.rawValue) else { return nil }
        if let source = options.source, !call(bind, owner.rawValue, source, port: 0) { return nil }
        guard call(connect, owner.rawValue, address, port: port) else { return nil }
        return IPAddress(localOf: owner.rawValue)
    }

    /// Applies the options to a socket, and returns whether all were applied. The user ID of a socket cannot be set.
    private static func apply(_ options: PathOptions, to descriptor: CInt) -> Bool {
        if options.userID != nil { return false }
        if var mark = options.mark {
            let length = socklen_t(MemoryLayout<UInt32>.size)
            guard setsockopt(descriptor, SOL_SOCKET, SO_MARK, &mark, length) == 0 else { return false }
        }
        guard let name = options.interface else { return true }
        return setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(name.utf8.count)) == 0
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

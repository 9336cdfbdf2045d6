internal import Glibc
internal import NetwatchEventLoop

/// The sockets that a service manager opened for this process, by the protocol of `sd_listen_fds(3)`.
///
/// They are recognized by their addresses, not by their names: with a name alone, the service could serve another path
/// than its clients use.
package struct InheritedSockets: Sendable {
    /// The first inherited descriptor, `SD_LISTEN_FDS_START`.
    private static let first: CInt = 3
    /// The largest number of descriptors that is plausible. A larger `LISTEN_FDS` is ignored, because it must be an
    /// error, and checking that many descriptors would take long.
    private static let limit: CInt = 1024

    private let descriptors: [CInt]

    init(descriptors: [CInt]) {
        self.descriptors = descriptors
    }

    /// Reads `LISTEN_PID` and `LISTEN_FDS`. Ignores them if they were set for another process, for example because a
    /// shell passed them on. Sets close-on-exec, so that child processes do not inherit the sockets.
    package static func fromEnvironment() -> InheritedSockets {
        guard number("LISTEN_PID") == getpid(), let count = number("LISTEN_FDS"), (1...limit).contains(count)
        else { return InheritedSockets(descriptors: []) }
        let descriptors = (first..<first + count).filter { fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }
        return InheritedSockets(descriptors: descriptors)
    }

    private static func number(_ name: String) -> CInt? {
        getenv(name).flatMap { CInt(String(cString: $0)) }
    }

    /// The sockets that the parts of the service use; each is `nil` if there is none.
    struct Uses: Sendable {
        let control: CInt?
        let web: CInt?
        let netlink: CInt?
        /// The number of sockets that no part uses. Their clients would get no response.
        let unused: Int
    }

    /// Finds the sockets of the service.
    ///
    /// - Parameters:
    ///   - path: The path of the control socket.
    ///   - web: The address of the status page; `nil` for none.
    func uses(control path: String, web: WebAddress?) -> Uses {
        let (control, web, netlink) = (listener(at: path), web.flatMap { listener(at: $0) }, routeNetlink)
        let used = [control, web, netlink].count { $0 != nil }
        return Uses(control: control, web: web, netlink: netlink, unused: descriptors.count - used)
    }

    /// Returns the inherited unix socket that listens on a path (`ListenStream=PATH`); `nil` if there is none.
    func listener(at path: String) -> CInt? {
        guard let address = UnixSocketAddress(path: path) else { return nil }
        return address.withSockaddr { listener(boundTo: $0, $1) }
    }

    /// Returns the inherited TCP socket that listens on an address (`ListenStream=ADDRESS:PORT`); `nil` if there is
    /// none.
    func listener(at address: WebAddress) -> CInt? {
        address.address.withSocketAddress(port: address.port) { listener(boundTo: $0, $1) }
    }

    private func listener(boundTo address: UnsafePointer<sockaddr>, _ length: socklen_t) -> CInt? {
        descriptors.first { descriptor in
            Self.option(SO_ACCEPTCONN, of: descriptor) == 1
                && Self.option(SO_TYPE, of: descriptor) == CInt(SOCK_STREAM.rawValue)
                && Self.isBound(descriptor, to: address, length)
        }
    }

    private static func isBound(
        _ descriptor: CInt,
        to address: UnsafePointer<sockaddr>,
        _ length: socklen_t
    ) -> Bool {
        var own = sockaddr_storage()
        var ownLength = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &own) { pointer in
            let result = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &ownLength)
            }
            return result == 0 && ownLength == length && memcmp(pointer, address, Int(length)) == 0
        }
    }

    /// The inherited netlink socket of the route protocol (`ListenNetlink=route`); `nil` if there is none.
    private var routeNetlink: CInt? {
        descriptors.first { descriptor in
            Self.option(SO_DOMAIN, of: descriptor) == AF_NETLINK
                && Self.option(SO_PROTOCOL, of: descriptor) == Self.routeProtocol
        }
    }

    /// `NETLINK_ROUTE`
    private static let routeProtocol: CInt = 0

    private static func option(_ option: CInt, of descriptor: CInt) -> CInt? {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : nil
    }
}

internal import Glibc

/// The sockets that a service manager opened for this process, by the protocol of `sd_listen_fds(3)`.
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

    /// The inherited netlink socket of the route protocol (`ListenNetlink=route`); `nil` if there is none.
    package var routeNetlink: CInt? {
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

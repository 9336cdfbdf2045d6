internal import CNetwatchLinux
package import Glibc
internal import NetwatchEventLoop

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

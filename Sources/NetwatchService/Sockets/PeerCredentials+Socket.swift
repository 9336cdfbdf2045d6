internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

extension PeerCredentials {
    /// Reads the credentials of the process at the other end of a connected unix socket (`SO_PEERCRED`).
    init(ofSocket descriptor: CInt) throws(SystemError) {
        var credentials = netwatch_ucred()
        var size = socklen_t(MemoryLayout<netwatch_ucred>.size)
        try systemCall("getsockopt SO_PEERCRED") {
            getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
        }
        self.init(pid: credentials.pid, uid: credentials.uid, gid: credentials.gid)
    }
}

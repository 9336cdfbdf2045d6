internal import Glibc
package import NetwatchEventLoop

/// The process that listens on a control socket.
package enum ServiceProcess {
    /// Returns the id of the process that listens on a unix socket, as the kernel recorded it (`SO_PEERCRED`). Sends
    /// nothing and does not block.
    ///
    /// - Throws: ``SystemError`` of `connect`:
    ///   - `ENOENT` or `ECONNREFUSED`: no process listens.
    ///   - `EACCES`: this user may not connect.
    ///   - `EAGAIN`: a process listens, but its backlog is full.
    package static func id(listeningAt path: [UInt8]) throws(SystemError) -> Int32 {
        guard let address = UnixSocketAddress(pathBytes: path) else {
            throw SystemError(call: "connect", errno: ENAMETOOLONG)
        }
        let socket = try unixSocket(.stream)
        let descriptor = socket.rawValue
        try systemCall("connect") { address.withSockaddr { connect(descriptor, $0, $1) } }
        return try PeerCredentials(ofSocket: descriptor).pid
    }
}

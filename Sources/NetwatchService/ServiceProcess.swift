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
        try credentials(listeningAt: path).pid
    }

    /// Returns the credentials of the process that listens on a unix socket, in the same way. For a socket of the
    /// service manager, they are those of the service manager.
    ///
    /// - Throws: ``SystemError`` of `connect`; see ``id(listeningAt:)``.
    package static func credentials(listeningAt path: [UInt8]) throws(SystemError) -> PeerCredentials {
        guard let address = UnixSocketAddress(pathBytes: path) else {
            throw SystemError(call: "connect", errno: ENAMETOOLONG)
        }
        let socket = try unixSocket(.stream)
        let descriptor = socket.rawValue
        try systemCall("connect") { address.withSockaddr { connect(descriptor, $0, $1) } }
        return try PeerCredentials(ofSocket: descriptor)
    }
}

internal import Glibc
package import NetwatchEventLoop

/// The process behind a control socket.
package enum ServiceProcess {
    /// The id of the process that listens on a unix socket, as the kernel knows it (`SO_PEERCRED`). Nothing
    /// is sent, and nothing waited for.
    ///
    /// - Throws: ``SystemError`` of `connect`: `ENOENT` or `ECONNREFUSED` when nobody listens, `EACCES`,
    ///   `EAGAIN` when more connections wait than the service takes.
    package static func id(listeningAt path: String) throws(SystemError) -> Int32 {
        guard let address = UnixSocketAddress(path: path) else {
            throw SystemError(call: "connect", errno: ENAMETOOLONG)
        }
        let socket = try unixSocket(.stream)
        let descriptor = socket.rawValue
        try systemCall("connect") { address.withSockaddr { connect(descriptor, $0, $1) } }
        return try PeerCredentials(ofSocket: descriptor).pid
    }
}

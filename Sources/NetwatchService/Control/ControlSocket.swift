internal import Glibc
internal import NetwatchEventLoop

/// The listening socket and the path it owns.
///
/// Claiming never takes a path from a process that serves it and never removes what is not a dead socket:
/// first the lock, which only one netwatch holds, then a connection attempt, which also finds servers that
/// know nothing of the lock. Only a socket that refuses the connection is unlinked.
struct ControlSocket: ~Copyable {
    let listener: FileDescriptor
    private let lock: LockFile
    private let path: String
    private let identity: FileIdentity?

    /// Claims the path and listens on it.
    ///
    /// The mode never grants more than asked, not for a moment: on Linux `bind(2)` gives the new file the
    /// mode that `fchmod(2)` gave the socket, less the umask, so the file starts too narrow at worst. It
    /// is widened to `mode` before `listen(2)`, and until then connections are refused. The umask itself
    /// is the whole process's and is not touched.
    static func claiming(_ path: String, mode: mode_t) throws(ControlSocketError) -> ControlSocket {
        guard let address = UnixSocketAddress(path: path) else {
            throw .unusablePath(path: path, limit: UnixSocketAddress.longestPath)
        }
        // Before the lock, whose file would be left beside something that is none of ours.
        try refuseOther(than: path)
        let lock = try LockFile.taking(socket: path)
        try clear(path, address)
        let listener = try listen(on: path, address, mode: mode)
        return ControlSocket(
            listener: listener,
            lock: lock,
            path: path,
            identity: try? FileIdentity(of: path)
        )
    }

    private init(
        listener: consuming FileDescriptor,
        lock: consuming LockFile,
        path: String,
        identity: FileIdentity?
    ) {
        self.listener = listener
        self.lock = lock
        self.path = path
        self.identity = identity
    }

    /// Whether clients that connect to the path reach this socket: its file was neither removed nor replaced.
    var isInPlace: Bool {
        guard let identity, let current = try? FileIdentity(of: path) else { return false }
        return current == identity
    }

    /// Removes the path if it still is the file that was bound. The lock goes after that.
    deinit {
        if isInPlace { unlink(path) }
    }

    private static func listen(
        on path: String,
        _ address: UnixSocketAddress,
        mode: mode_t
    ) throws(ControlSocketError) -> FileDescriptor {
        do throws(SystemError) {
            let listener = try unixSocket(.stream)
            let descriptor = listener.rawValue
            try systemCall("fchmod") { fchmod(descriptor, mode) }
            try systemCall("bind \(path)") { address.withSockaddr { bind(descriptor, $0, $1) } }
            try systemCall("chmod \(path)") { fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) }
            try systemCall("listen \(path)") { Glibc.listen(descriptor, SOMAXCONN) }
            return listener
        } catch {
            throw error.errno == EADDRINUSE ? .inUse(path: path, pid: nil) : .system(error)
        }
    }
}

// MARK: - What is in the way

extension ControlSocket {
    /// What a path is occupied by.
    fileprivate enum Occupant {
        case nothing
        case foreignFile
        case deadSocket
        case server(pid_t?)
    }

    private static func refuseOther(than path: String) throws(ControlSocketError) {
        do throws(SystemError) {
            guard let file = try FileIdentity(of: path), !file.isSocket else { return }
        } catch {
            throw .system(error)
        }
        throw .notASocket(path: path)
    }

    /// Makes room for `bind(2)`, which fails on any existing file.
    private static func clear(_ path: String, _ address: UnixSocketAddress) throws(ControlSocketError) {
        let occupied: ControlSocketError
        do throws(SystemError) {
            switch try occupant(of: path, address) {
            case .nothing: return
            case .foreignFile: occupied = .notASocket(path: path)
            case .server(let pid): occupied = .inUse(path: path, pid: pid)
            case .deadSocket:
                try systemCall("unlink \(path)") { unlink(path) }
                return
            }
        } catch {
            throw .system(error)
        }
        throw occupied
    }

    private static func occupant(
        of path: String,
        _ address: UnixSocketAddress
    ) throws(SystemError) -> Occupant {
        guard let file = try FileIdentity(of: path) else { return .nothing }
        guard file.isSocket else { return .foreignFile }
        let client = try unixSocket(.stream)
        do throws(SystemError) {
            try systemCall("connect \(path)") { address.withSockaddr { connect(client.rawValue, $0, $1) } }
            return .server(try? PeerCredentials(ofSocket: client.rawValue).pid)
        } catch {
            return try Occupant(refusing: error)
        }
    }
}

extension ControlSocket.Occupant {
    /// Reads a failed `connect(2)`. What it does not understand (`EACCES`: somebody else's; `EPROTOTYPE`:
    /// not a stream) it throws, since only certain death may cost a file.
    fileprivate init(refusing error: SystemError) throws(SystemError) {
        switch error.errno {
        case ECONNREFUSED: self = .deadSocket
        case ENOENT: self = .nothing
        // Somebody listens, and more connections are waiting than it takes.
        case EAGAIN: self = .server(nil)
        default: throw error
        }
    }
}

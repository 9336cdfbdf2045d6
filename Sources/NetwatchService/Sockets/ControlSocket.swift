package import Glibc
package import NetwatchEventLoop

/// The listening socket and its path, which it owns unless the service manager has opened the socket.
///
/// Claiming never takes a path from a process that serves it, and never removes a file other than a dead socket:
///
/// 1. It takes the lock file, which only one netwatch process can hold.
/// 2. It connects to the path. This also finds servers that do not use the lock file.
/// 3. If the socket refuses the connection, it is dead and is unlinked.
struct ControlSocket: ~Copyable {
    let listener: FileDescriptor
    /// `nil` if the path belongs to the service manager.
    private let lock: LockFile?
    private let path: String
    private let identity: FileIdentity?
    /// Whether the path is removed at the end.
    private let ownsPath: Bool
    /// Who could connect when the socket was opened; `nil` if the path did not lead to the socket.
    let admission: SocketAdmission?

    /// Claims the path and listens on it.
    ///
    /// The file never has more permissions than `permissions`, not even briefly. On Linux `bind(2)` gives the new file
    /// the mode that `fchmod(2)` set on the socket, less the umask: at most the mode for the owner alone. It gets its
    /// permissions before `listen(2)`, and connections are refused until then. The umask is not changed, because it
    /// belongs to the whole process.
    static func claiming(
        _ path: String,
        for permissions: SocketPermissions
    ) throws(ControlSocketError) -> ControlSocket {
        let address = try address(of: path)
        // Checked before the lock is taken. Otherwise the lock file would remain next to a file of another program.
        try rejectOtherFile(at: path)
        let lock = try LockFile.taking(socket: path)
        try clear(path, address)
        let listener = try bind(to: path, address)
        let admission = try listen(listener.rawValue, at: path, for: permissions)
        return ControlSocket(
            listener: listener,
            lock: lock,
            path: path,
            identity: try? FileIdentity(of: path),
            ownsPath: true,
            admission: admission
        )
    }

    /// Checks that ``claiming(_:for:)`` would find no other file and no server at the path. Changes nothing.
    static func requireFree(_ path: String) throws(ControlSocketError) {
        _ = try unservedFile(at: path, try address(of: path))
    }

    private static func address(of path: String) throws(ControlSocketError) -> UnixSocketAddress {
        guard let address = UnixSocketAddress(path: path) else {
            throw .unusablePath(path: path, limit: UnixSocketAddress.longestPath)
        }
        return address
    }

    /// Takes over a listening socket that the service manager has bound to the path. The service manager keeps the
    /// socket and the path, so that clients can connect before the next start of the service, too.
    ///
    /// The file gets its permissions now. Until then it has the mode that the service manager gave it, and connections
    /// of any user may already wait.
    static func adopting(
        _ descriptor: CInt,
        at path: String,
        for permissions: SocketPermissions
    ) throws(ControlSocketError) -> ControlSocket {
        do throws(SystemError) {
            let listener = try FileDescriptor.adopting(descriptor)
            // Clients read the id of the process that called listen(2) last; see `ServiceProcess`.
            try systemCall("listen") { Glibc.listen(descriptor, SOMAXCONN) }
            let identity = try? FileIdentity(of: path)
            return ControlSocket(
                listener: listener,
                lock: nil,
                path: path,
                identity: identity,
                ownsPath: false,
                admission: identity == nil ? nil : try permissions.apply(to: path)
            )
        } catch {
            throw .system(error)
        }
    }

    private init(
        listener: consuming FileDescriptor,
        lock: consuming LockFile?,
        path: String,
        identity: FileIdentity?,
        ownsPath: Bool,
        admission: SocketAdmission?
    ) {
        self.listener = listener
        self.lock = lock
        self.path = path
        self.identity = identity
        self.ownsPath = ownsPath
        self.admission = admission
    }

    /// Whether clients that connect to the path reach this socket: its file was neither removed nor replaced.
    var isInPlace: Bool {
        guard let identity, let current = try? FileIdentity(of: path) else { return false }
        return current == identity
    }

    /// Changes the permissions of the socket, if the path still leads to it.
    ///
    /// - Returns: Who can connect now; `nil` if the path leads to another file.
    func apply(_ permissions: SocketPermissions) throws(SystemError) -> SocketAdmission? {
        isInPlace ? try permissions.apply(to: path) : nil
    }

    /// Removes an owned path if it is still the file that was bound. After that the lock is released.
    deinit {
        if ownsPath, isInPlace { unlink(path) }
    }

    private static func bind(
        to path: String,
        _ address: UnixSocketAddress
    ) throws(ControlSocketError) -> FileDescriptor {
        do throws(SystemError) {
            let socket = try unixSocket(.stream)
            let descriptor = socket.rawValue
            try systemCall("fchmod") { fchmod(descriptor, SocketPermissions.ownerMode) }
            try systemCall("bind \(path)") { address.withSockaddr { Glibc.bind(descriptor, $0, $1) } }
            return socket
        } catch {
            throw error.errno == EADDRINUSE ? .inUse(path: path, pid: nil) : .system(error)
        }
    }

    /// Sets the permissions of a bound socket and listens on it. Returns who can connect.
    private static func listen(
        _ descriptor: CInt,
        at path: String,
        for permissions: SocketPermissions
    ) throws(ControlSocketError) -> SocketAdmission {
        do throws(SystemError) {
            let admission = try permissions.apply(to: path)
            try systemCall("listen \(path)") { Glibc.listen(descriptor, SOMAXCONN) }
            return admission
        } catch {
            throw .system(error)
        }
    }
}

// MARK: - Existing files

extension ControlSocket {
    /// The kind of file at a path.
    fileprivate enum ExistingFile {
        case nothing
        case foreignFile
        case deadSocket
        case server(pid_t?)
    }

    private static func rejectOtherFile(at path: String) throws(ControlSocketError) {
        do throws(SystemError) {
            guard let file = try FileIdentity(of: path), !file.isSocket else { return }
        } catch {
            throw .system(error)
        }
        throw .notASocket(path: path)
    }

    /// Removes a dead socket, because `bind(2)` fails if the file exists.
    private static func clear(_ path: String, _ address: UnixSocketAddress) throws(ControlSocketError) {
        guard case .deadSocket = try unservedFile(at: path, address) else { return }
        do throws(SystemError) {
            try systemCall("unlink \(path)") { unlink(path) }
        } catch {
            throw .system(error)
        }
    }

    /// Returns the kind of file at a path that no process serves: nothing or a dead socket.
    private static func unservedFile(
        at path: String,
        _ address: UnixSocketAddress
    ) throws(ControlSocketError) -> ExistingFile {
        let file: ExistingFile
        do throws(SystemError) {
            file = try existingFile(at: path, address)
        } catch {
            throw .system(error)
        }
        switch file {
        case .nothing, .deadSocket: return file
        case .foreignFile: throw .notASocket(path: path)
        case .server(let pid): throw .inUse(path: path, pid: pid)
        }
    }

    private static func existingFile(
        at path: String,
        _ address: UnixSocketAddress
    ) throws(SystemError) -> ExistingFile {
        guard let file = try FileIdentity(of: path) else { return .nothing }
        guard file.isSocket else { return .foreignFile }
        let client = try unixSocket(.stream)
        do throws(SystemError) {
            try systemCall("connect \(path)") { address.withSockaddr { connect(client.rawValue, $0, $1) } }
            return .server(try? PeerCredentials(ofSocket: client.rawValue).pid)
        } catch {
            return try ExistingFile(refusing: error)
        }
    }
}

extension ControlSocket.ExistingFile {
    /// Interprets a failed `connect(2)`. Rethrows every error that does not prove that the socket is dead or missing,
    /// for example `EACCES` (another user's socket) and `EPROTOTYPE` (not a stream socket).
    fileprivate init(refusing error: SystemError) throws(SystemError) {
        switch error.errno {
        case ECONNREFUSED: self = .deadSocket
        case ENOENT: self = .nothing
        // A server is listening, but its backlog is full.
        case EAGAIN: self = .server(nil)
        default: throw error
        }
    }
}

// MARK: - The lock

extension LockFile {
    /// Takes the lock of a socket path, `<socket>.lock`.
    static func taking(socket path: String) throws(ControlSocketError) -> LockFile {
        do {
            return try LockFile.taking(path + ".lock")
        } catch {
            switch error {
            case .held(let owner): throw .inUse(path: path, pid: owner)
            case .system(let error): throw .system(error)
            }
        }
    }
}

/// A reason why the control socket could not be claimed.
package enum ControlSocketError: Error, Hashable, CustomStringConvertible {
    /// The path is empty, contains a NUL, or is longer than the kernel accepts.
    case unusablePath(path: String, limit: Int)
    /// Another process serves the path. `pid` is its process id, if known.
    case inUse(path: String, pid: pid_t?)
    /// A file that is not a socket exists at the path. It was left unchanged.
    case notASocket(path: String)
    /// The directory of the socket could not be created.
    case directory(path: String, SystemError)
    /// A system call failed. The name of the call includes the path.
    case system(SystemError)
    /// The port of the status page could not be opened.
    case web(WebAddress, SystemError)

    package var description: String {
        switch self {
        case .unusablePath(let path, let limit):
            "the path of the control socket must have 1 to \(limit) bytes; `\(path)` has \(path.utf8.count)"
        case .inUse(let path, let pid?):
            "`\(path)` is already served by process \(pid)"
        case .inUse(let path, nil):
            "`\(path)` is already served by another process"
        case .notASocket(let path):
            "`\(path)` exists and is not a socket; it was not changed"
        case .directory(let path, let error):
            "could not create `\(path)`, the directory of the control socket: \(errnoDescription(error.errno))"
        case .system(let error):
            "could not open the control socket: \(error)"
        case .web(let address, let error):
            "could not listen on `\(address)`: \(error)"
        }
    }
}

/// The identity of the file at a path. Symbolic links are not followed.
struct FileIdentity: Hashable {
    private let device: dev_t
    private let inode: ino_t
    let isSocket: Bool

    /// Reads the identity; `nil` if the file does not exist.
    ///
    /// - Throws: ``SystemError`` of `lstat`.
    init?(of path: String) throws(SystemError) {
        var status = stat()
        do throws(SystemError) {
            try systemCall("lstat \(path)") { lstat(path, &status) }
        } catch {
            guard error.errno == ENOENT else { throw error }
            return nil
        }
        device = status.st_dev
        inode = status.st_ino
        isSocket = status.st_mode & S_IFMT == S_IFSOCK
    }
}

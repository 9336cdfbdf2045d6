package import Glibc
package import NetwatchEventLoop

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

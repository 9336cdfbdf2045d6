package import Glibc
package import NetwatchEventLoop

/// Why the control socket could not be claimed.
package enum ControlSocketError: Error, Hashable, CustomStringConvertible {
    /// The path is empty, contains a NUL, or has more bytes than the kernel takes.
    case unusablePath(path: String, limit: Int)
    /// Another process serves the path; which one, if it told.
    case inUse(path: String, pid: pid_t?)
    /// Something that is not a socket is in the way. It was left alone.
    case notASocket(path: String)
    /// A system call failed; its name carries the path.
    case system(SystemError)

    package var description: String {
        switch self {
        case .unusablePath(let path, let limit):
            "the control socket's path must have 1 to \(limit) bytes, `\(path)` has \(path.utf8.count)"
        case .inUse(let path, let pid?):
            "`\(path)` is already served by process \(pid)"
        case .inUse(let path, nil):
            "`\(path)` is already served by another process"
        case .notASocket(let path):
            "`\(path)` exists and is not a socket; it was left alone"
        case .system(let error):
            "could not open the control socket: \(error)"
        }
    }
}

internal import Glibc

/// Directories that are there for good.
package enum Directory {
    /// Makes a directory and whatever is missing above it, and syncs every new name: one is durable only once
    /// the directory that holds it is. Does nothing when it is there.
    ///
    /// - Parameter mode: The permissions of each new directory, whatever the umask.
    /// - Returns: Whether the directory itself is new.
    /// - Throws: ``SystemError`` of `mkdir`, `chmod` or `fsync`.
    @discardableResult
    package static func make(_ path: String, mode: UInt32) throws(SystemError) -> Bool {
        if mkdir(path, mode) == 0 {
            try systemCall("chmod \(path)") { chmod(path, mode) }
            try sync(parent(of: path))
            return true
        }
        let error = errno
        if error == EEXIST { return false }
        let parent = parent(of: path)
        // A parent that is there all along is not what is missing.
        guard error == ENOENT, parent != path, try make(parent, mode: mode) else {
            throw SystemError(call: "mkdir \(path)", errno: error)
        }
        return try make(path, mode: mode)
    }

    /// Makes the names in a directory durable (`fsync(2)`).
    package static func sync(_ path: String) throws(SystemError) {
        let directory = try FileDescriptor.opening(path)
        try systemCall("fsync \(path)") { fsync(directory.rawValue) }
    }

    /// The path without its last component: `/a` of `/a/b/`, `.` of `a`.
    private static func parent(of path: String) -> String {
        let trimmed = path.reversed().drop { $0 == "/" }
        let rest = String(trimmed.drop { $0 != "/" }.drop { $0 == "/" }.reversed())
        return rest.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : rest
    }
}

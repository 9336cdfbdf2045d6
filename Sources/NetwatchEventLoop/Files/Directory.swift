internal import Glibc

/// Functions that create directories and sync their entries to disk.
package enum Directory {
    /// Creates a directory with all missing parents. Has no effect if the directory exists.
    ///
    /// The parent of each new directory is synced, because a name is durable only after the directory that contains it
    /// was synced.
    ///
    /// - Parameters:
    ///   - path: The path of the directory.
    ///   - mode: The permissions of each new directory, regardless of the umask.
    /// - Returns: Whether the directory was created.
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
        // Only a missing parent can be repaired here. If the parent exists, the error has another cause.
        guard error == ENOENT, parent != path, try make(parent, mode: mode) else {
            throw SystemError(call: "mkdir \(path)", errno: error)
        }
        return try make(path, mode: mode)
    }

    /// Syncs a directory, which makes the names in it durable (`fsync(2)`).
    package static func sync(_ path: String) throws(SystemError) {
        let directory = try FileDescriptor.opening(path)
        try systemCall("fsync \(path)") { fsync(directory.rawValue) }
    }

    /// Returns the path without its last component: `/a` for `/a/b/`, `.` for `a`.
    private static func parent(of path: String) -> String {
        let trimmed = path.reversed().drop { $0 == "/" }
        let rest = String(trimmed.drop { $0 != "/" }.drop { $0 == "/" }.reversed())
        return rest.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : rest
    }
}

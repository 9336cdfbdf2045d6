internal import Glibc

/// Functions for durable directories.
package enum Directory {
    /// Creates a directory with all missing parents, and syncs the parent of each new one: a name is durable only
    /// after the directory that contains it was synced. Does nothing if the directory exists.
    ///
    /// - Parameter mode: The permissions of each new directory, regardless of the umask.
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
        // If the parent already exists, it is not the cause of the error.
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

    /// Returns the path without its last component: `/a` for `/a/b/`, `.` for `a`.
    private static func parent(of path: String) -> String {
        let trimmed = path.reversed().drop { $0 == "/" }
        let rest = String(trimmed.drop { $0 != "/" }.drop { $0 == "/" }.reversed())
        return rest.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : rest
    }
}

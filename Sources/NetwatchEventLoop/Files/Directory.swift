internal import Glibc

/// Functions that create and list directories, and sync their entries to disk.
package enum Directory {
    /// Creates a directory. Has no effect if the directory exists.
    ///
    /// The parent of each new directory is synced, because a name is durable only after the directory that contains it
    /// was synced.
    ///
    /// - Parameters:
    ///   - path: The path of the directory.
    ///   - mode: The permissions of each new directory, regardless of the umask.
    ///   - withParents: Whether to create missing parents as well. Default: true.
    /// - Returns: Whether the directory was created.
    /// - Throws: ``SystemError`` of `mkdir`, `chmod` or `fsync`.
    @discardableResult
    package static func make(
        _ path: String,
        mode: UInt32,
        withParents: Bool = true
    ) throws(SystemError) -> Bool {
        if mkdir(path, mode) == 0 {
            try systemCall("chmod \(path)") { chmod(path, mode) }
            try sync(parent(of: path))
            return true
        }
        let error = errno
        if error == EEXIST { return false }
        let parent = parent(of: path)
        // Only a missing parent can be repaired here. If the parent exists, the error has another cause.
        guard withParents, error == ENOENT, parent != path, try make(parent, mode: mode) else {
            throw SystemError(call: "mkdir \(path)", errno: error)
        }
        return try make(path, mode: mode)
    }

    /// Syncs a directory, which makes the names in it durable (`fsync(2)`).
    package static func sync(_ path: String) throws(SystemError) {
        let directory = try FileDescriptor.opening(path)
        try systemCall("fsync \(path)") { fsync(directory.rawValue) }
    }

    /// Syncs the directory that contains a file.
    package static func syncParent(of path: String) throws(SystemError) { try sync(parent(of: path)) }

    /// Removes a file. A missing file is not an error.
    package static func removeFile(_ path: String) throws(SystemError) {
        guard unlink(path) != 0, errno != ENOENT else { return }
        throw SystemError(call: "unlink \(path)", errno: errno)
    }

    /// Returns the names in a directory, without `.` and `..`, in no particular order.
    ///
    /// - Parameters:
    ///   - directory: The open directory.
    ///   - path: The path for error messages.
    /// - Throws: ``SystemError`` of `open`, `fdopendir` or `readdir`.
    package static func names(
        in directory: borrowing FileDescriptor,
        path: String
    ) throws(SystemError) -> [String] {
        // Reading a directory moves the offset of its descriptor, so this uses a separate one.
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        let parent = directory.rawValue
        let descriptor = try systemCall("open \(path)") { openat(parent, ".", flags) }
        guard let stream = fdopendir(descriptor) else {
            let error = SystemError(call: "fdopendir \(path)", errno: errno)
            close(descriptor)
            throw error
        }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            names.append(withUnsafePointer(to: &entry.pointee.d_name) { text($0) })
        }
        guard errno == 0 else { throw SystemError(call: "readdir \(path)", errno: errno) }
        return names.filter { $0 != "." && $0 != ".." }
    }

    private static func text<Name>(_ name: UnsafePointer<Name>) -> String {
        name.withMemoryRebound(to: CChar.self, capacity: MemoryLayout<Name>.size) { String(cString: $0) }
    }

    /// Returns the path without its last component: `/a` for `/a/b/`, `.` for `a`.
    package static func parent(of path: String) -> String {
        let trimmed = path.reversed().drop { $0 == "/" }
        let rest = String(trimmed.drop { $0 != "/" }.drop { $0 == "/" }.reversed())
        return rest.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : rest
    }
}

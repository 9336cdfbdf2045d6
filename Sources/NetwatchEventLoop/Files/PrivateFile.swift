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

/// A small file that only its owner can access, and that is replaced as a whole.
package enum PrivateFile {
    /// Replaces a file, or creates it, with permissions 0600. A reader finds the old content or the new one.
    ///
    /// The caller must exclude other writers: the content is first written to `path` with `.new` added. A file of this
    /// name that an earlier process left is removed.
    ///
    /// - Parameter isDurable: Whether the new content survives a power loss from the return of this function on.
    /// - Throws: ``SystemError``. The old content then remains, unless only the directory could not be synced.
    package static func replace(
        _ path: String,
        with bytes: [UInt8],
        isDurable: Bool
    ) throws(SystemError) {
        let temporary = "\(path).new"
        try Directory.removeFile(temporary)
        do throws(SystemError) {
            try create(temporary, bytes, isDurable: isDurable)
            try systemCall("rename \(temporary)") { rename(temporary, path) }
        } catch {
            // A partial file would take space, perhaps on a full disk.
            unlink(temporary)
            throw error
        }
        if isDurable { try Directory.syncParent(of: path) }
    }

    private static func create(_ path: String, _ bytes: [UInt8], isDurable: Bool) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags, 0o600) })
        let descriptor = file.rawValue
        // The umask may have removed permissions.
        try systemCall("fchmod \(path)") { fchmod(descriptor, 0o600) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = try systemCall("write \(path)") {
                rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            }
            rest = rest.dropFirst(count)
        }
        if isDurable { try systemCall("fsync \(path)") { fsync(descriptor) } }
    }

    /// The content of a file.
    package struct Content: Hashable, Sendable {
        package let bytes: [UInt8]
        /// When the file was last written, in seconds since 1970 by the wall clock.
        package let modified: Int
    }

    /// Reads a file.
    ///
    /// - Parameter limit: The maximum number of bytes.
    /// - Returns: `nil` if there is no file.
    /// - Throws: ``SystemError``: `EFBIG` for a larger file, `EINVAL` for another kind of file, `ELOOP` for a symbolic
    ///   link.
    package static func read(_ path: String, upTo limit: Int) throws(SystemError) -> Content? {
        // Opening a FIFO without O_NONBLOCK would wait for a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let opened = open(path, flags)
        if opened < 0, errno == ENOENT { return nil }
        guard opened >= 0 else { throw SystemError(call: "open \(path)", errno: errno) }
        let file = FileDescriptor(owning: opened)
        var status = stat()
        try systemCall("fstat \(path)") { fstat(opened, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(call: "read \(path)", errno: EINVAL)
        }
        let bytes = try read(file, path, upTo: limit)
        return Content(bytes: bytes, modified: status.st_mtim.tv_sec)
    }

    private static func read(
        _ file: borrowing FileDescriptor,
        _ path: String,
        upTo limit: Int
    ) throws(SystemError) -> [UInt8] {
        let descriptor = file.rawValue
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= limit {
            let count = try systemCall("read \(path)") { Glibc.read(descriptor, &piece, piece.count) }
            if count == 0 { return bytes }
            bytes += piece.prefix(count)
        }
        throw SystemError(call: "read \(path)", errno: EFBIG)
    }
}

extension Collection<UInt8> {
    /// The bytes without the byte order mark that some editors write at the start of a UTF-8 file. Text files that people
    /// write may begin with it.
    package var withoutByteOrderMark: SubSequence {
        starts(with: [0xef, 0xbb, 0xbf] as [UInt8]) ? dropFirst(3) : self[...]
    }
}

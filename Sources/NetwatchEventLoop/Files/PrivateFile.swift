internal import Glibc

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

internal import CNetwatchLinux
internal import Glibc
package import NetwatchEventLoop

/// The file system operations of a spool. Tests replace them with a simulated disk that fails or loses data.
///
/// After a power failure, any data that was not synced may be lost. A name is durable only after ``syncDirectory()``.
///
/// All methods may block on the disk. Names refer to files in the spool's directory.
package protocol SpoolFiles: Sendable {
    /// The path of the directory, for error messages.
    var path: String { get }

    /// Returns the inode of the opened directory, even if another directory is at its path now. Returns `nil` for a
    /// simulated directory.
    func inode() throws(SystemError) -> Inode?

    /// Creates a file with mode 0600, and opens it for reading and writing. Throws if the file exists.
    func create(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file for reading. Throws `EISDIR` for a directory, `ELOOP` for a symbolic link, and `EINVAL` for
    /// any other kind of file.
    func open(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file outside the spool for reading, and follows symbolic links. Throws `EISDIR` for a directory,
    /// and `EINVAL` for any other kind of file.
    func openExternal(_ path: String) throws(SystemError) -> any SpoolFile

    func rename(_ name: String, to newName: String) throws(SystemError)

    func remove(_ name: String) throws(SystemError)

    /// Makes the names of all files durable (fsync(2) of the directory).
    func syncDirectory() throws(SystemError)

    /// Returns the names of all entries of the directory, in no particular order.
    func names() throws(SystemError) -> [String]

    /// Returns the number of free bytes on the file system.
    func freeBytes() throws(SystemError) -> Int64
}

/// An open file. It is closed when the last reference is released. Several threads may use it at the same time.
package protocol SpoolFile: AnyObject, Sendable {
    func size() throws(SystemError) -> Int64

    /// Reads bytes at an offset.
    ///
    /// - Returns: The number of bytes read, which may be less than the size of the buffer; 0 at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// Writes bytes at an offset.
    ///
    /// - Returns: The number of bytes written, which may be less than `bytes.count`.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// Makes this file share the data of another file, without copying it. Returns `false` if the file system cannot do
    /// this.
    func clone(_ source: any SpoolFile) -> Bool

    /// Makes the bytes of the file durable (fdatasync(2)).
    func sync() throws(SystemError)
}

/// The directory of a spool on a real file system.
///
/// All names are resolved relative to the descriptor of the directory. The spool therefore stays in the directory that
/// was opened, even if that directory is moved.
package final class SystemSpoolFiles: SpoolFiles {
    package let path: String
    private let directory: FileDescriptor

    private init(path: String, directory: consuming FileDescriptor) {
        self.path = path
        self.directory = directory
    }

    /// Opens the directory, and sets its mode to 0700. If it is missing, it is created durably.
    ///
    /// - Throws: ``SystemError`` if `mkdir`, `fsync`, `open` or `chmod` fails, or if the path is a symbolic link.
    package static func opening(_ path: String) throws(SystemError) -> SystemSpoolFiles {
        try Directory.make(path, mode: 0o700)
        // The parent is also synced if the directory exists. It may have been created just before a crash of the
        // process, and its name may not be durable yet.
        try Directory.sync("\(path)/..")
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        let directory = FileDescriptor(owning: try systemCall("open \(path)") { Glibc.open(path, flags) })
        let descriptor = directory.rawValue
        try systemCall("chmod \(path)") { fchmod(descriptor, 0o700) }
        return SystemSpoolFiles(path: path, directory: directory)
    }

    package func inode() throws(SystemError) -> Inode? { try Inode(of: directory.rawValue) }

    package func create(_ name: String) throws(SystemError) -> any SpoolFile {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let file = try openFile(name, flags)
        do {
            try file.makePrivate()
        } catch {
            try? remove(name)
            throw error
        }
        return file
    }

    package func open(_ name: String) throws(SystemError) -> any SpoolFile {
        let file = try openFile(name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
        try file.checkKind()
        return file
    }

    package func openExternal(_ path: String) throws(SystemError) -> any SpoolFile {
        guard !path.utf8.contains(0) else { throw SystemError(call: "open", errno: EINVAL) }
        // Without O_NONBLOCK, open(2) of a pipe would wait for a writer.
        let flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC
        let descriptor = FileDescriptor(owning: try systemCall("open \(path)") { Glibc.open(path, flags) })
        let file = SystemSpoolFile(path: path, descriptor)
        try file.checkKind()
        return file
    }

    package func rename(_ name: String, to newName: String) throws(SystemError) {
        let descriptor = directory.rawValue
        try systemCall("rename \(path(of: name))") { renameat(descriptor, name, descriptor, newName) }
    }

    package func remove(_ name: String) throws(SystemError) {
        try systemCall("unlink \(path(of: name))") { unlinkat(directory.rawValue, name, 0) }
    }

    package func syncDirectory() throws(SystemError) {
        try systemCall("fsync \(path)") { fsync(directory.rawValue) }
    }

    package func names() throws(SystemError) -> [String] {
        try Directory.names(in: directory, path: path)
    }

    package func freeBytes() throws(SystemError) -> Int64 {
        var status = statvfs()
        try systemCall("fstatvfs \(path)") { fstatvfs(directory.rawValue, &status) }
        return FileSystem.Space(status).free
    }

    private func path(of name: String) -> String { "\(path)/\(name)" }

    private func openFile(_ name: String, _ flags: CInt) throws(SystemError) -> SystemSpoolFile {
        let path = path(of: name)
        let descriptor = try systemCall("open \(path)") { openat(directory.rawValue, name, flags, 0o600) }
        return SystemSpoolFile(path: path, FileDescriptor(owning: descriptor))
    }
}

/// A file on a real file system.
private final class SystemSpoolFile: SpoolFile {
    private let path: String
    private let descriptor: FileDescriptor

    init(path: String, _ descriptor: consuming FileDescriptor) {
        self.path = path
        self.descriptor = descriptor
    }

    /// Sets the mode to 0600, regardless of the umask.
    func makePrivate() throws(SystemError) {
        try systemCall("chmod \(path)") { fchmod(descriptor.rawValue, 0o600) }
    }

    /// Throws unless this is a regular file. Only a regular file has a length that says how much can be read.
    func checkKind() throws(SystemError) {
        let kind = try status().st_mode & S_IFMT
        guard kind != S_IFREG else { return }
        throw SystemError(call: "open \(path)", errno: kind == S_IFDIR ? EISDIR : EINVAL)
    }

    func size() throws(SystemError) -> Int64 { Int64(try status().st_size) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        try systemCall("read \(path)") {
            pread(descriptor.rawValue, buffer.baseAddress, buffer.count, off_t(offset))
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        try systemCall("write \(path)") {
            pwrite(descriptor.rawValue, bytes.baseAddress, bytes.count, off_t(offset))
        }
    }

    func clone(_ source: any SpoolFile) -> Bool {
        guard let source = source as? SystemSpoolFile else { return false }
        return netwatch_clone_file(descriptor.rawValue, source.descriptor.rawValue) == 0
    }

    func sync() throws(SystemError) {
        try systemCall("fdatasync \(path)") { fdatasync(descriptor.rawValue) }
    }

    private func status() throws(SystemError) -> stat {
        var status = stat()
        try systemCall("fstat \(path)") { fstat(descriptor.rawValue, &status) }
        return status
    }
}

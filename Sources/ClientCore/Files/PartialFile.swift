internal import Glibc
internal import NetwatchEventLoop

/// The file that a download writes to, open and exclusively locked.
///
/// The lock (`flock(2)`) excludes other processes and other requests of the same process. The kernel releases it when
/// the process ends, even if the process crashes.
struct PartialFile: ~Copyable, Sendable {
    enum Failure: Error {
        /// Another request or process is writing to the file.
        case inUse
        case system(SystemError)
    }

    let path: String
    private let descriptor: FileDescriptor
    private(set) var length: Int64

    private init(path: String, descriptor: consuming FileDescriptor, length: Int64) {
        self.path = path
        self.descriptor = descriptor
        self.length = length
    }

    /// Creates a file. Fails with `EEXIST` if the path exists.
    static func creating(_ path: String) throws(Failure) -> PartialFile {
        try lock(path, try open(path, O_CREAT | O_EXCL))
    }

    /// Opens an existing file, which must be a regular file that belongs to this user.
    static func opening(_ path: String) throws(Failure) -> PartialFile {
        try lock(path, try open(path, 0))
    }

    /// Opens a file, and creates it if it does not exist.
    ///
    /// A file with a second hard link is a finished download whose process was killed between `link` and `unlink`. In
    /// this case the path is unlinked, and a new file is created.
    static func openingOrCreating(_ path: String) throws(Failure) -> PartialFile {
        // Retry: another process may finish its download, and unlink the path, between the open and the check. This
        // happens a few times at most.
        for _ in 0..<16 {
            let file = try lock(path, try open(path, O_CREAT))
            switch try file.names() {
            case 0: continue
            case 1: return file
            default: try system { () throws(SystemError) in try Directory.removeFile(path) }
            }
        }
        throw .inUse
    }

    /// Returns the number of hard links of the file; 0 if the path no longer leads to this file.
    private borrowing func names() throws(Failure) -> UInt {
        let (mine, path) = (try status(), path)
        var named = stat()
        guard lstat(path, &named) == 0, named.st_ino == mine.st_ino, named.st_dev == mine.st_dev else {
            return 0
        }
        return UInt(mine.st_nlink)
    }

    private static func open(_ path: String, _ flags: CInt) throws(Failure) -> FileDescriptor {
        // O_NONBLOCK: opening a FIFO must not block.
        let flags = flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        return try system { () throws(SystemError) in
            guard !path.utf8.contains(0) else { throw SystemError(call: "open \(path)", errno: EINVAL) }
            return FileDescriptor(
                owning: try systemCall("open \(path)") { Glibc.open(path, flags, 0o600) }
            )
        }
    }

    private static func lock(
        _ path: String,
        _ descriptor: consuming FileDescriptor
    ) throws(Failure) -> PartialFile {
        if flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            let error = errno
            throw error == EWOULDBLOCK ? .inUse : .system(SystemError(call: "flock \(path)", errno: error))
        }
        var file = PartialFile(path: path, descriptor: descriptor, length: 0)
        let status = try file.status()
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
            throw .system(SystemError(call: "open \(path)", errno: EPERM))
        }
        file.length = Int64(status.st_size)
        return file
    }

    private borrowing func status() throws(Failure) -> stat {
        let (descriptor, path) = (descriptor.rawValue, path)
        var status = stat()
        _ = try Self.system { () throws(SystemError) in
            try systemCall("fstat \(path)") { fstat(descriptor, &status) }
        }
        return status
    }

    private static func system<Result: ~Copyable>(
        _ body: () throws(SystemError) -> Result
    ) throws(Failure) -> Result {
        do { return try body() } catch { throw .system(error) }
    }

    /// A path to the open file that stays valid when the file is renamed.
    var openPath: String { "/proc/self/fd/\(descriptor.rawValue)" }

    /// Appends bytes to the file. After an error some bytes may have been written; `length` includes them.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var rest = bytes[...]
        let (descriptor, path) = (descriptor.rawValue, path)
        while !rest.isEmpty {
            let offset = length
            let count = try systemCall("pwrite \(path)") {
                pwrite(
                    descriptor,
                    UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                    rest.count,
                    off_t(offset)
                )
            }
            length += Int64(count)
            rest = rest.dropFirst(count)
        }
    }

    /// Drops all bytes after the first `length` bytes.
    mutating func truncate(to length: Int64) throws(SystemError) {
        let (descriptor, path) = (descriptor.rawValue, path)
        try systemCall("ftruncate \(path)") { ftruncate(descriptor, off_t(length)) }
        self.length = length
    }

    /// Unlocks before closing. Closing alone would not release the lock while a child process, between fork and exec,
    /// has a copy of the descriptor.
    deinit { unlock() }

    /// Releases the lock before the descriptor is closed.
    borrowing func unlock() {
        flock(descriptor.rawValue, LOCK_UN)
    }

    /// Whether only this process knows the file, so that it is useless once the process has ended. Errors are ignored,
    /// and count as `false`.
    ///
    /// The sticky bit records this, because it survives the end of the process. The kernel ignores it for a regular file
    /// (`inode(7)`). systemd-tmpfiles(8) does not delete such a file because of its age, so a file in use is safe. Only
    /// netwatch deletes an abandoned one, in a later process of the same user.
    var isPrivate: Bool {
        get { (try? status()).map { $0.st_mode & S_ISVTX != 0 } ?? false }
        nonmutating set {
            guard let mode = try? status().st_mode, newValue != (mode & S_ISVTX != 0) else { return }
            fchmod(descriptor.rawValue, mode & 0o777 | (newValue ? S_ISVTX : 0))
        }
    }

    /// Removes a file with ``isPrivate`` whose process has ended without removing it. Any other file is not opened,
    /// because the lock would make another request fail.
    static func removeIfAbandoned(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_ISVTX != 0 else { return }
        do {
            let file = try opening(path)
            // Its process may have handed the file to the program in the meantime.
            if file.isPrivate { try Directory.removeFile(path) }
        } catch {
            // A running process has locked the file, or it cannot be removed.
        }
    }

    /// Waits until the contents are on disk.
    borrowing func sync() throws(SystemError) {
        let (descriptor, path) = (descriptor.rawValue, path)
        try systemCall("fdatasync \(path)") { fdatasync(descriptor) }
    }
}

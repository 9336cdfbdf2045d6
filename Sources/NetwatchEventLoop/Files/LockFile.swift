package import Glibc

/// An exclusive `flock(2)` lock on a file or directory, held as long as the value exists.
///
/// The kernel releases the lock when the process ends for any reason. The file contains the process ID of its owner,
/// for the error messages of other processes.
///
/// The file is not removed when it is unlocked. If it were, two processes could each lock a different file with the
/// same name.
package struct LockFile: ~Copyable, Sendable {
    package enum Failure: Error, Hashable {
        /// Another process holds the lock. Its process ID is `nil` if that process has not written it yet.
        case held(by: pid_t?)
        case system(SystemError)
    }

    private let file: FileDescriptor

    private init(file: consuming FileDescriptor) {
        self.file = file
    }

    /// Unlocks the file explicitly. Closing it is not enough: a lock of flock(2) lasts until all duplicates of the
    /// descriptor are closed. A child process that another thread is starting has a duplicate until its `exec`.
    deinit {
        flock(file.rawValue, LOCK_UN)
    }

    /// Acquires the lock of a file without blocking, and writes the process ID into the file. Creates a missing file
    /// with permissions 0600.
    package static func taking(_ path: String) throws(Failure) -> LockFile {
        let lock = try locking(
            try failing { () throws(SystemError) in try FileDescriptor.openingPrivate(path) },
            path
        )
        try failing { () throws(SystemError) in try noteOwner(in: lock.file, path) }
        return lock
    }

    /// Acquires the lock of a directory without blocking. A directory cannot store the owner's process ID, so other
    /// processes cannot find out the owner.
    package static func taking(directory path: String) throws(Failure) -> LockFile {
        try locking(try failing { () throws(SystemError) in try FileDescriptor.opening(path) }, path)
    }

    /// Returns the process ID in a lock file, whether the file is still locked or not. Returns `nil` if the file is
    /// missing or empty.
    package static func owner(namedIn path: String) -> pid_t? {
        guard let file = try? FileDescriptor.opening(path) else { return nil }
        return owner(in: file)
    }

    /// Returns the identity of the locked file.
    ///
    /// - Throws: ``SystemError`` of `fstat`.
    package func inode() throws(SystemError) -> Inode { try Inode(of: file.rawValue) }

    private static func locking(_ file: consuming FileDescriptor, _ path: String) throws(Failure) -> LockFile
    {
        if flock(file.rawValue, LOCK_EX | LOCK_NB) != 0 {
            let error = SystemError(call: "flock \(path)", errno: errno)
            throw error.errno == EWOULDBLOCK ? .held(by: owner(in: file)) : .system(error)
        }
        return LockFile(file: file)
    }

    private static func failing<Result: ~Copyable>(
        _ body: () throws(SystemError) -> Result
    ) throws(Failure) -> Result {
        do {
            return try body()
        } catch {
            throw .system(error)
        }
    }

    private static func noteOwner(in file: borrowing FileDescriptor, _ path: String) throws(SystemError) {
        let text = Array("\(getpid())\n".utf8)
        let descriptor = file.rawValue
        try systemCall("ftruncate \(path)") { ftruncate(descriptor, 0) }
        try systemCall("pwrite \(path)") { pwrite(descriptor, text, text.count, 0) }
    }

    private static func owner(in file: borrowing FileDescriptor) -> pid_t? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = pread(file.rawValue, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        return pid_t(String(decoding: bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}

package import Glibc

/// Proof that nobody else has a place: an exclusive `flock(2)` on a file or directory, held as long as the value lives.
///
/// The kernel gives the lock back when the process ends, however it ends. The file holds the owner's process
/// id, for the message to who comes too late; it stays when the lock goes, because two processes could each
/// lock a file of one name if it was unlinked.
package struct LockFile: ~Copyable, Sendable {
    package enum Failure: Error, Hashable {
        /// Somebody else has it. The process id is `nil` in the moment before it is written.
        case held(by: pid_t?)
        case system(SystemError)
    }

    private let file: FileDescriptor

    private init(file: consuming FileDescriptor) {
        self.file = file
    }

    /// Unlocks the file rather than only closing it. A program that another thread is starting at this moment holds a copy
    /// of the descriptor until its `exec`, and a lock of flock(2) lasts until every copy is closed.
    deinit {
        flock(file.rawValue, LOCK_UN)
    }

    /// Takes the lock, without waiting. The file is made, with permissions 0600, when it is missing.
    package static func taking(_ path: String) throws(Failure) -> LockFile {
        let lock = try locking(
            try failing { () throws(SystemError) in try FileDescriptor.openingPrivate(path) },
            path
        )
        try failing { () throws(SystemError) in try noteOwner(in: lock.file, path) }
        return lock
    }

    /// Takes the lock of a directory, without waiting. It leaves no trace, so the owner is not known to others.
    package static func taking(directory path: String) throws(Failure) -> LockFile {
        try locking(try failing { () throws(SystemError) in try FileDescriptor.opening(path) }, path)
    }

    /// The process that a lock file names; `nil` when there is no such file or nothing in it.
    package static func owner(namedIn path: String) -> pid_t? {
        guard let file = try? FileDescriptor.opening(path) else { return nil }
        return owner(in: file)
    }

    /// Which file is locked.
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

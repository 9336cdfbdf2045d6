internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// The directory a queue lives in, and the proof that nobody else uses it.
///
/// `queue.lock` is held with `flock(2)` for as long as the store is open: the kernel gives it back when the
/// process ends, however it ends. The file holds the owner's process id for the message to the next one.
final class QueueDirectory: Sendable {
    let path: String
    private let lock: Mutex<FileDescriptor?>

    var databasePath: String { "\(path)/queue.sqlite" }

    /// Makes the directory (0700) and the database file (0600) when they are missing, whatever the umask,
    /// and takes the lock. Blocks. A directory with other files that is open to others is refused.
    init(path: String) throws {
        self.path = path
        try Self.makeDirectory(path)
        lock = Mutex(try Self.takeLock(at: "\(path)/queue.lock"))
        try Self.makeFile("\(path)/queue.sqlite")
        try Self.sync(path)
    }

    func release() {
        lock.withLock { $0 = nil }
    }

    /// An existing directory is closed to others only when it is a queue's or empty: nobody wants `/tmp` to
    /// become private because a queue was put there.
    private static func makeDirectory(_ path: String) throws(QueueError) {
        try usable(path) { () throws(SystemError) in
            if mkdir(path, 0o700) == 0 {
                try systemCall("chmod \(path)") { chmod(path, 0o700) }
                return try sync("\(path)/..")
            }
            guard errno == EEXIST else { throw SystemError(call: "mkdir \(path)", errno: errno) }
            guard try isOpenToOthers(path) else { return }
            guard try isQueueOrEmpty(path) else { throw SystemError(call: "use \(path)", errno: ENOTEMPTY) }
            try systemCall("chmod \(path)") { chmod(path, 0o700) }
        }
    }

    private static func isOpenToOthers(_ path: String) throws(SystemError) -> Bool {
        var status = stat()
        try systemCall("stat \(path)") { stat(path, &status) }
        return status.st_mode & 0o077 != 0
    }

    private static func isQueueOrEmpty(_ path: String) throws(SystemError) -> Bool {
        if access("\(path)/queue.lock", F_OK) == 0 { return true }
        guard let entries = opendir(path) else { throw SystemError(call: "opendir \(path)", errno: errno) }
        defer { closedir(entries) }
        // "." and ".." are always there.
        return readdir(entries) != nil && readdir(entries) != nil && readdir(entries) == nil
    }

    private static func makeFile(_ path: String) throws(QueueError) {
        try usable(path) { () throws(SystemError) in _ = try openPrivate(path) }
    }

    /// The name of a new file is durable only once its directory is.
    private static func sync(_ path: String) throws(SystemError) {
        let directory = try FileDescriptor.opening(path)
        try systemCall("fsync \(path)") { fsync(directory.rawValue) }
    }

    private static func openPrivate(_ path: String) throws(SystemError) -> FileDescriptor {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags, 0o600) })
        try systemCall("fchmod \(path)") { fchmod(file.rawValue, 0o600) }
        return file
    }

    private static func usable(_ path: String, _ body: () throws(SystemError) -> Void) throws(QueueError) {
        do {
            try body()
        } catch {
            throw QueueError(.directoryUnusable, "the queue's directory cannot be used: \(error)", path: path)
        }
    }
}

// MARK: - The lock

extension QueueDirectory {
    private static func takeLock(at path: String) throws -> FileDescriptor {
        let file: FileDescriptor
        do {
            file = try openPrivate(path)
        } catch {
            throw QueueError(.directoryUnusable, "the queue's lock cannot be opened: \(error)", path: path)
        }
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            let owner = ownerPID(in: file)
            let name = owner.map { "process \($0)" } ?? "another process"
            throw QueueError(.alreadyOwned, "\(path) is held by \(name)", path: path, ownerPID: owner)
        }
        try writePID(to: file, path: path)
        return file
    }

    private static func ownerPID(in file: borrowing FileDescriptor) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = pread(file.rawValue, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: bytes.prefix(count).prefix { $0 != 10 }, as: UTF8.self))
    }

    private static func writePID(to file: borrowing FileDescriptor, path: String) throws(SystemError) {
        let text = Array("\(getpid())\n".utf8)
        let descriptor = file.rawValue
        try systemCall("ftruncate \(path)") { ftruncate(descriptor, 0) }
        try systemCall("pwrite \(path)") { pwrite(descriptor, text, text.count, 0) }
    }
}

internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// The directory a queue lives in, and the proof that nobody else uses it.
///
/// `queue.lock` is held for as long as the store is open.
final class QueueDirectory: Sendable {
    let path: String
    private let lock: Mutex<LockFile?>

    var databasePath: String { "\(path)/queue.sqlite" }
    var damage: DamageNote { DamageNote(directory: path) }

    /// Makes the directory (0700) and the database file (0600) when they are missing, whatever the umask,
    /// and takes the lock. Blocks. A directory with other files that is open to others is refused.
    init(path: String) throws(QueueError) {
        self.path = path
        try Self.makeDirectory(path)
        lock = Mutex(try Self.takeLock(at: "\(path)/queue.lock"))
        try Self.makeFile("\(path)/queue.sqlite")
        try Self.usable(path) { () throws(SystemError) in try Directory.sync(path) }
    }

    func release() {
        lock.withLock { $0 = nil }
    }

    /// An existing directory is closed to others only when it is a queue's or empty: nobody wants `/tmp` to
    /// become private because a queue was put there.
    private static func makeDirectory(_ path: String) throws(QueueError) {
        try usable(path) { () throws(SystemError) in
            if try Directory.make(path, mode: 0o700) { return }
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
        try usable(path) { () throws(SystemError) in _ = try FileDescriptor.openingPrivate(path) }
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
    private static func takeLock(at path: String) throws(QueueError) -> LockFile {
        do {
            return try LockFile.taking(path)
        } catch {
            throw QueueError(error, path: path)
        }
    }
}

extension QueueError {
    fileprivate init(_ failure: LockFile.Failure, path: String) {
        switch failure {
        case .held(let owner):
            let name = owner.map { "process \($0)" } ?? "another process"
            self.init(.alreadyOwned, "\(path) is held by \(name)", path: path, ownerPID: owner)
        case .system(let error):
            self.init(.directoryUnusable, "the queue's lock cannot be taken: \(error)", path: path)
        }
    }
}

internal import Glibc
internal import NetwatchEventLoop

/// The directory of a queue, and the locks that exclude other processes.
///
/// The directory and the file `queue.lock` are both locked while the store is open. The file contains the process id of
/// the owner. The directory is locked as well, because its lock remains if the file is removed.
final class QueueDirectory: Sendable {
    private struct Locks: ~Copyable {
        let directory: LockFile
        let file: LockFile
        let isDatabaseLost: Bool
    }

    let path: String
    /// Whether the directory contained the spool or the log of a queue, but no database, when the locks were taken. The
    /// database file was not created then.
    let isDatabaseLost: Bool
    private let locks: Lock<Locks?>

    var databasePath: String { "\(path)/queue.sqlite" }
    var damage: DamageMarker { DamageMarker(directory: path) }

    /// Creates the directory (mode 0700) and the database file (mode 0600) if they are missing, regardless of the
    /// umask, and takes the locks. Does not create a database file in place of one that was removed or moved away,
    /// because the loss of the requests would go unnoticed. Blocks.
    ///
    /// - Parameter allowsLostDatabase: Whether to take the locks even if the database file was removed or moved away,
    ///   to set the rest of the store aside. Default `false`.
    /// - Throws: ``QueueError``: `alreadyOwned` if another process holds a lock. `storeUnusable` if the database file
    ///   was removed or moved away; no file is created then. `directoryUnusable` if a system call fails, or if other
    ///   users can access the directory and it contains files but no `queue.lock`.
    init(path: String, allowsLostDatabase: Bool = false) throws(QueueError) {
        self.path = path
        try Self.makeDirectory(path)
        let taken = try Self.takeLocks(of: path, requiresDatabase: !allowsLostDatabase)
        isDatabaseLost = taken.isDatabaseLost
        locks = Lock(taken)
        if !isDatabaseLost { try Self.makeFile("\(path)/queue.sqlite") }
        try Self.usable(path) { () throws(SystemError) in try Directory.sync(path) }
    }

    /// Takes the locks of a directory that exists. Creates only the lock file, and changes no permissions. Blocks.
    ///
    /// - Throws: ``QueueError``: `alreadyOwned` or `directoryUnusable`.
    init(existing path: String) throws(QueueError) {
        self.path = path
        let taken = try Self.takeLocks(of: path, requiresDatabase: false)
        isDatabaseLost = taken.isDatabaseLost
        locks = Lock(taken)
    }

    /// Releases the locks.
    func release() {
        locks.withLock { $0 = nil }
    }

    /// Returns the paths that must not change while the store is open: the directory, the lock file, the database and
    /// its log. The database must already be open: this function records the inodes of the files that are at these
    /// paths now.
    func location() throws(QueueError) -> StoreLocation {
        var location = StoreLocation()
        try Self.usable(path) { () throws(SystemError) in
            let (directory, lock) = try inodes()
            try location.add("the queue's directory", at: path, inode: directory)
            try location.add("the queue's lock", at: "\(path)/queue.lock", inode: lock)
            try location.add("the queue's database", at: "\(path)/queue.sqlite")
            try location.add("the database's log", at: "\(path)/queue.sqlite-wal")
        }
        return location
    }

    private func inodes() throws(SystemError) -> (directory: Inode?, lock: Inode?) {
        let found = locks.withLock { locks -> Result<(Inode?, Inode?), SystemError> in
            Result { () throws(SystemError) in (try locks?.directory.inode(), try locks?.file.inode()) }
        }
        return try found.get()
    }

    /// Creates the directory, or makes an existing one private. An existing directory must be empty or belong to a
    /// queue, so that `/tmp` is not made private when it is named by mistake.
    private static func makeDirectory(_ path: String) throws(QueueError) {
        var foreignFile: String?
        try usable(path) { () throws(SystemError) in
            if try Directory.make(path, mode: 0o700) { return }
            guard try isOpenToOthers(path) else { return }
            foreignFile = try firstFile(ofOtherPrograms: path)
            if foreignFile == nil { try systemCall("chmod \(path)") { chmod(path, 0o700) } }
        }
        guard let foreignFile else { return }
        throw QueueError(
            .directoryUnusable,
            "\(path) contains `\(foreignFile)` but no queue, and other users can access it; choose an empty directory",
            path: path
        )
    }

    private static func isOpenToOthers(_ path: String) throws(SystemError) -> Bool {
        var status = stat()
        try systemCall("stat \(path)") { stat(path, &status) }
        return status.st_mode & 0o077 != 0
    }

    /// Returns the name of a file in a directory that contains no queue; `nil` if it contains a queue or nothing.
    private static func firstFile(ofOtherPrograms path: String) throws(SystemError) -> String? {
        if access("\(path)/queue.lock", F_OK) == 0 { return nil }
        return try Directory.names(in: .opening(path), path: path).min()
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

// MARK: - A lost database

extension QueueDirectory {
    /// Returns whether a directory has no database file, but had one.
    ///
    /// Returns `false` if damage is recorded, because moving a damaged store away may have been interrupted after it
    /// moved the database. Opening the queue then reports the damage.
    static func hasLostDatabase(_ path: String) -> Bool {
        access("\(path)/queue.damaged", F_OK) != 0 && lacksDatabase(path)
    }

    /// Returns whether a directory has no database file, but files that a queue creates after it: the log or the spool.
    /// Without the lock file, a directory `spool` may belong to another program, unless it contains a body.
    private static func lacksDatabase(_ path: String) -> Bool {
        guard access("\(path)/queue.sqlite", F_OK) != 0, errno == ENOENT else { return false }
        if access("\(path)/queue.sqlite-wal", F_OK) == 0 { return true }
        let spool = "\(path)/spool"
        guard access(spool, F_OK) == 0 else { return false }
        return access("\(path)/queue.lock", F_OK) == 0 || containsBody(spool)
    }

    private static func containsBody(_ spool: String) -> Bool {
        do throws(SystemError) {
            return try Directory.names(in: .opening(spool), path: spool).contains(where: SpoolName.isComplete)
        } catch {
            return false
        }
    }

    private static func lostDatabase(in path: String) -> QueueError {
        QueueError(
            .storeUnusable,
            "the queue's database `\(path)/queue.sqlite` is missing, but its log or its spool exists; if the file was "
                + "moved away, move it back; otherwise restore a copy of the whole directory; without a copy, "
                + "`OfflineQueue.setAside(directory:)` moves the remaining files away",
            path: "\(path)/queue.sqlite"
        )
    }
}

// MARK: - The lock

extension QueueDirectory {
    /// Takes both locks, the directory's first. If the lock file was removed while another process owns the queue, this
    /// process is refused before it creates a new lock file.
    ///
    /// - Parameter requiresDatabase: Whether to throw if the database was removed, before the lock file is created.
    ///   Checked while the directory is locked, because moving a store away removes the database first.
    private static func takeLocks(of path: String, requiresDatabase: Bool) throws(QueueError) -> Locks {
        let directory = try taking(path) { () throws(LockFile.Failure) in
            try LockFile.taking(directory: path)
        }
        if requiresDatabase, hasLostDatabase(path) { throw lostDatabase(in: path) }
        let isDatabaseLost = lacksDatabase(path)
        let file = try taking(path) { () throws(LockFile.Failure) in
            try LockFile.taking("\(path)/queue.lock")
        }
        return Locks(directory: directory, file: file, isDatabaseLost: isDatabaseLost)
    }

    private static func taking(
        _ path: String,
        _ take: () throws(LockFile.Failure) -> LockFile
    ) throws(QueueError) -> LockFile {
        let file = "\(path)/queue.lock"
        do throws(LockFile.Failure) {
            return try take()
        } catch {
            if case .held(nil) = error {
                throw QueueError(.held(by: LockFile.owner(namedIn: file)), path: file)
            }
            throw QueueError(error, path: file)
        }
    }
}

extension QueueError {
    fileprivate init(_ failure: LockFile.Failure, path: String) {
        switch failure {
        case .held(let owner):
            let name = owner.map { "process \($0)" } ?? "another process"
            self.init(.alreadyOwned, "\(path) is in use by \(name)", path: path, ownerPID: owner)
        case .system(let error):
            self.init(.directoryUnusable, "the queue's lock cannot be acquired: \(error)", path: path)
        }
    }
}

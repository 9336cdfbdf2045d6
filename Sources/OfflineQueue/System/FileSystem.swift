internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// Sizes of file systems and files.
enum FileSystem {
    /// The space of a file system.
    struct Space {
        /// The number of free bytes that an unprivileged process may use.
        let free: Int64
        /// The size of the file system in bytes.
        let total: Int64

        /// Creates the value from the result of statvfs(3) or fstatvfs(3). A size beyond the range of `Int64` is
        /// clamped, because a file system may report any value.
        init(_ status: statvfs) {
            free = Self.bytes(status.f_bavail, status)
            total = Self.bytes(status.f_blocks, status)
        }

        private static func bytes(_ blocks: fsblkcnt_t, _ status: statvfs) -> Int64 {
            let (bytes, overflows) = UInt64(blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize))
            return overflows ? .max : Int64(clamping: bytes)
        }

        /// Returns the number of bytes to keep free: `wanted`, reduced to a tenth of a small file system, but never to
        /// less than `minimum`.
        func reserve(_ wanted: Int64, minimum: Int64) -> Int64 { min(wanted, max(total / 10, minimum)) }
    }

    /// Returns the space of the file system at a path; `nil` if statvfs(3) fails.
    static func space(at path: String) -> Space? {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Space(status) : nil
    }

    /// Returns whether the file system at a path is read-only; `false` if statvfs(3) fails.
    static func isReadOnly(at path: String) -> Bool {
        var status = statvfs()
        return statvfs(path, &status) == 0 && isReadOnly(status)
    }

    /// Returns whether the result of statvfs(3) is that of a read-only file system.
    static func isReadOnly(_ status: statvfs) -> Bool { status.f_flag & UInt(ST_RDONLY) != 0 }

    /// Returns the size of a file in bytes; 0 if stat(2) fails, for example because the file does not exist.
    static func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}

/// Checks whether the paths of a store still lead to the files that the store has open.
///
/// A descriptor stays open when its file is removed or replaced. SQLite would continue to write to the removed file,
/// and the next start would find none of that data. A check takes one stat(2) per file.
struct StoreLocation: Sendable {
    private struct Place: Sendable {
        let name: String
        let path: String
        let inode: Inode
    }

    private var places: [Place] = []

    /// Adds a file or directory to check.
    ///
    /// - Parameters:
    ///   - name: What the file is, for error messages, such as "the queue's lock".
    ///   - inode: The inode of the open file. `nil`: the inode of the file that is at the path now.
    /// - Throws: ``SystemError`` if `stat` or `getcwd` fails.
    mutating func add(_ name: String, at path: String, inode: Inode? = nil) throws(SystemError) {
        let found = if let inode { inode } else { try Inode(at: path) }
        places.append(Place(name: name, path: try Self.absolute(path), inode: found))
    }

    /// Returns an error for the first added file that was removed, replaced or cannot be accessed; `nil` if all files
    /// are in place.
    func difference() -> QueueError? {
        for place in places {
            guard let problem = problem(of: place) else { continue }
            return QueueError(
                .storeReplaced,
                "\(place.name) `\(place.path)` \(problem) while the queue was running; the queue accepts no more requests",
                path: place.path
            )
        }
        return nil
    }

    /// Returns the absolute path, which stays valid when the process changes its working directory.
    private static func absolute(_ path: String) throws(SystemError) -> String {
        guard !path.hasPrefix("/") else { return path }
        guard let current = getcwd(nil, 0) else { throw SystemError(call: "getcwd", errno: errno) }
        defer { free(current) }
        return "\(String(cString: current))/\(path)"
    }

    private func problem(of place: Place) -> String? {
        do throws(SystemError) {
            return try Inode(at: place.path) == place.inode ? nil : "was replaced"
        } catch {
            return [ENOENT, ENOTDIR].contains(error.errno)
                ? "was removed or moved" : "cannot be accessed (\(errnoDescription(error.errno)))"
        }
    }
}

/// The points in the code at which a crash is most likely to reveal an error. Crash tests install an action that ends
/// the process at such a point. Without an action, passing a point takes one atomic load.
package enum CrashPoint: String, Hashable, Sendable, CaseIterable {
    /// A body file is synced, but does not have its final name yet.
    case bodySynced
    /// A body file has its final name, but no row refers to it yet.
    case bodyNamed
    /// All statements of a transaction have run.
    case beforeCommit
    /// A transaction is committed, but its callers have not been resumed yet.
    case afterCommit
    /// The claim is on disk, but nothing was sent.
    case claimed
    /// The transfer has started.
    case sending
    /// A response has arrived, but its outcome is not on disk yet.
    case responded
    /// The outcome is on disk, but the body files that are no longer needed still exist.
    case concluded

    private static let isArmed = Atomic(false)
    private static let action = Lock<(@Sendable (CrashPoint) -> Void)?>(nil)

    /// Installs an action that is called at every point; `nil` removes it.
    package static func install(_ action: (@Sendable (CrashPoint) -> Void)?) {
        self.action.withLock { $0 = action }
        isArmed.store(action != nil, ordering: .releasing)
    }

    /// Calls the installed action, if there is one. The code calls this when it passes the point.
    package func reached() {
        guard Self.isArmed.load(ordering: .acquiring) else { return }
        Self.action.withLock { $0 }?(self)
    }
}
